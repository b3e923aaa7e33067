// /api/ab: comparisons. Two configurations answer the same question side by side, the user
// votes without knowing which is which, and the metrics rate the configurations.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { parsePreference, preferences } from '../../comparisons/comparison.ts'
import { armsBeginning, armSpelling } from '../../dialects/chunks/two-arms.ts'
import { AppError } from '../../errors/app-error.ts'
import { fingerprint } from '../../runs/run-acceptance.ts'
import type { ComparisonRow } from '../../stores/comparison-store.ts'
import { requestedCursor } from '../cursor.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, optionalFilter, type Server, type Services } from '../routes.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { startHeaders } from '../start-or-resume.ts'
import { attachArms } from './ab-stream.ts'
import { comparisonView, listedComparisonView, metricsView, toComparison, toMetrics } from './ab-views.ts'
import { questionBody, dialectFor, toStart } from './chat-body.ts'
import { refuseSettingFields } from './compare-fields.ts'
import { clientFields, clientOf, clientQuery, idField, optionalFlag, sentenceBody } from './client.ts'

const configName = z.string().max(200).nullish()

/** The body of a question, without the fields that would give both arms the same configuration. */
const compareBody = questionBody.omit({ config_name: true, is_refresh: true, provider: true, model: true }).extend({
  config_a: configName.describe(
    'The id of a configuration that GET /api/get_configs lists; the default configuration if it is left out.',
  ),
  config_b: configName,
})

const compareFields = Object.keys(compareBody.shape)

const createBody = z.object({
  ...clientFields,
  conversation_id: idField,
  user_prompt_mid: idField,
  response_a_mid: idField.describe('The answer on side a.'),
  response_b_mid: idField,
  config_a_id: idField,
  config_b_id: idField,
  is_config_a_first: z
    .boolean()
    .nullish()
    .describe('Whether config_a_id gave the answer on side a; the default is true.'),
})

const preferenceBody = z.object({
  ...clientFields,
  comparison_id: idField,
  preference: z.string().max(20).describe('a, b, tie or both_bad; upper or lower case.'),
  revise: optionalFlag.describe('true changes an earlier vote; the earlier vote stays in revisions.'),
})

const comparisonParams = z.object({ comparison_id: z.string().min(1).max(200) })
const compareRoute = 'POST /api/ab/compare'

export function comparisonRoutes(server: Server, services: Services): void {
  const { comparisons } = services
  const refusals = { 400: sentenceBody, 404: sentenceBody, 409: sentenceBody }

  server.post(
    '/api/ab/compare',
    {
      // Runs before the schema, because the schema drops unknown fields.
      preValidation: async (request) => refuseSettingFields(request.body, compareFields),
      schema: {
        tags: ['Chat API'],
        summary: 'Ask two configurations the same question',
        description:
          'Runs both configurations on the same question and history, and streams both answers. Other fields that would change how an arm answers (model, config_name, …) are refused. Each frame has the field arm, a or b, which is the side; the server assigns the sides at random. The last two frames have comparison_id and vote_requested. Attach again with GET /api/ab/{comparison_id}/stream.',
        querystring: clientQuery,
        headers: startHeaders,
        body: compareBody,
        response: { 204: z.null().describe('You already have the whole stream.'), ...refusals },
      },
    },
    async (request, reply) => {
      const owner = clientOf(request, services)
      const dialect = dialectFor(request.body, request.headers.accept)
      const key = request.headers['idempotency-key']
      const lastEventId = request.headers['last-event-id']
      if (lastEventId !== undefined && lastEventId !== '') {
        const row = await comparisonToResume(owner, key, request.body)
        return await attachArms(services, request, reply, {
          row,
          dialect,
          cursor: requestedCursor(armSpelling, lastEventId),
        })
      }
      const { config_a, config_b, ...question } = request.body
      const start = toStart(
        { ...question, config_name: null, is_refresh: false, provider: null, model: null },
        owner,
        services,
      )
      const { comparison, outcome } = await comparisons.compare({
        start: { ...start, idempotency: key === undefined ? null : { key, route: compareRoute, body: request.body } },
        configA: nonBlank(config_a),
        configB: nonBlank(config_b),
      })
      const cancels = cancelsOnDisconnect(services, start, outcome === 'accepted')
      return await attachArms(services, request, reply, { row: comparison, dialect, cursor: armsBeginning, cancels })
    },
  )

  server.get(
    '/api/ab/:comparison_id/stream',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Attach to a comparison again',
        description:
          'Sends everything after the cursor, then follows both answers live. The cursor is the id of the last frame you received, such as a:12,b:7. 204 if you already have the whole stream.',
        params: comparisonParams,
        querystring: clientQuery.extend({
          after: z.string().max(100).optional(),
          include_agent_steps: optionalFlag,
          include_tool_steps: optionalFlag,
        }),
        response: { 204: z.null(), ...refusals },
      },
    },
    async (request, reply) => {
      const row = await ownComparison(request, request.params.comparison_id)
      const cursor = requestedCursor(armSpelling, request.headers['last-event-id'], request.query.after)
      const { include_agent_steps, include_tool_steps } = request.query
      const dialect = dialectFor({ include_agent_steps, include_tool_steps }, request.headers.accept)
      return await attachArms(services, request, reply, { row, dialect, cursor })
    },
  )

  server.post(
    '/api/ab/create',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Compare two answers that already exist',
        querystring: clientQuery,
        body: createBody,
        response: { 200: z.object({ success: z.literal(true), comparison_id: z.string() }), ...refusals },
      },
    },
    async (request) => {
      const owner = clientOf(request, services)
      const { body } = request
      const row = await comparisons.create(owner, {
        conversationId: body.conversation_id,
        userMessageId: body.user_prompt_mid,
        messageA: body.response_a_mid,
        messageB: body.response_b_mid,
        configA: body.config_a_id,
        configB: body.config_b_id,
        firstSideIsConfigA: body.is_config_a_first ?? true,
      })
      return { success: true as const, comparison_id: row.id }
    },
  )

  server.post(
    '/api/ab/preference',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Vote',
        description:
          'Each comparison takes one vote; revise: true changes it. The preferred answer becomes part of the history; both answers stay stored.',
        querystring: clientQuery,
        body: preferenceBody,
        response: {
          200: comparisonView.extend({
            success: z.literal(true),
            changed: z.boolean().describe('False if the revision repeats the current vote.'),
          }),
          ...refusals,
        },
      },
    },
    async (request) => {
      const { comparison_id, preference: text, revise } = request.body
      const preference = parsePreference(text)
      if (preference === undefined) {
        throw new AppError(
          'invalid_request',
          `preference: ${JSON.stringify(text)} is not one of ${preferences.join(', ')}.`,
        )
      }
      const { row, changed } = await comparisons.vote(
        callerOf(request, services),
        comparison_id,
        preference,
        revise === true,
      )
      return { success: true as const, changed, ...toComparison(row) }
    },
  )

  server.get(
    '/api/ab/pending',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'The newest comparison of a conversation that waits for a vote',
        querystring: clientQuery.extend({ conversation_id: z.string().trim().min(1).max(200) }),
        response: { 200: z.object({ success: z.literal(true), comparison: comparisonView.nullable() }), ...refusals },
      },
    },
    async (request) => {
      const row = await comparisons.pending(clientOf(request, services), request.query.conversation_id)
      return { success: true as const, comparison: row === null ? null : toComparison(row) }
    },
  )

  server.get(
    '/api/ab/comparisons',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'List your comparisons, newest first',
        description: 'If there are more, the Link header leads to the next page.',
        querystring: clientQuery.extend({
          limit: z.coerce.number().int().min(1).max(100).default(20),
          before: optionalFilter().describe('The comparison_id of the last one on the previous page.'),
          unvoted: optionalFlag.describe('true: only those without a vote.'),
        }),
        response: {
          200: z.object({ success: z.literal(true), comparisons: z.array(listedComparisonView) }),
          ...refusals,
        },
      },
    },
    async (request, reply) => {
      const { limit, before, unvoted } = request.query
      const { rows, more } = await comparisons.list(clientOf(request, services), {
        limit,
        ...(before === undefined ? {} : { before }),
        ...(unvoted === undefined ? {} : { unvoted }),
      })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      return {
        success: true as const,
        comparisons: rows.map((row) => ({ ...toComparison(row), question: row.question })),
      }
    },
  )

  server.get(
    '/api/ab/comparison/:comparison_id',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'A comparison; after the vote it also shows which configuration was on which side',
        params: comparisonParams,
        querystring: clientQuery,
        response: { 200: z.object({ success: z.literal(true), comparison: comparisonView }), ...refusals },
      },
    },
    async (request) => ({
      success: true as const,
      comparison: toComparison(await ownComparison(request, request.params.comparison_id)),
    }),
  )

  server.get(
    '/api/ab/metrics',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'How the votes rate the configurations',
        description:
          'Your own votes. The votes of all users with scope=all, or if the request has neither a login nor a client_id. The reply has only numbers and the names of configurations, no ids and no message texts.',
        querystring: clientQuery.extend({ scope: z.enum(['mine', 'all']).optional() }),
        response: { 200: metricsView, ...refusals },
      },
    },
    async (request) => {
      const namesNoUser =
        request.login === null && request.query.client_id === undefined && request.query.userId === undefined
      const scope = request.query.scope ?? (namesNoUser ? 'all' : 'mine')
      return toMetrics(await comparisons.metrics(scope === 'all' ? null : clientOf(request, services)), scope)
    },
  )

  async function ownComparison(request: FastifyRequest, id: string): Promise<ComparisonRow> {
    return await comparisons.get(callerOf(request, services), id)
  }

  /** A POST with Last-Event-ID only resumes; it never starts a comparison. */
  async function comparisonToResume(owner: string, key: string | undefined, body: unknown): Promise<ComparisonRow> {
    if (key === undefined) {
      throw new AppError(
        'resume_by_post',
        'A POST cannot resume a stream by itself. Use GET /api/ab/{comparison_id}/stream with Last-Event-ID, or send the Idempotency-Key of the first request.',
      )
    }
    const found = await comparisons.findStarted(owner, { key, route: compareRoute, fingerprint: fingerprint(body) })
    if (found === undefined) {
      throw new AppError(
        'comparison_not_found',
        'No comparison was started with this Idempotency-Key; send the request without Last-Event-ID to start one.',
      )
    }
    return found
  }
}

function nonBlank(name: string | null | undefined): string | undefined {
  return name == null || name.trim() === '' ? undefined : name.trim()
}
