// GET /v1/interactions: the inbox of a user. Everything that waits, or waited, for a decision:
// confirmations of tool calls, questions, and calls of tools that the client executes. A question
// of any run, in a conversation or of a job, is answered here by its id.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import { jsonValue } from '../json-value.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { interactionView, toInteractionView } from './interaction-view.ts'

const { kind, status } = interactionView.shape

export function interactionRoutes(server: Server, services: Services): void {
  server.get(
    '/v1/interactions',
    {
      schema: {
        tags: ['Feed'],
        summary: 'Questions of all kinds that wait, or waited, for you; newest first',
        description:
          'Decide a `confirmation` with POST /v1/tool-confirmations/{id}/confirm or /reject, answer a `question` with POST /v1/interactions/{id}/reply, and execute a `client_tool` with POST /v1/agent/runs/{runId}/tool-results.',
        querystring: userIdQuery.extend({
          status: optionalFilter().pipe(status.optional()),
          kind: optionalFilter().pipe(kind.optional()),
          conversationId: optionalFilter(),
          runId: optionalFilter(),
          limit: z.coerce.number().int().min(1).max(200).default(100),
          before: optionalFilter().describe('The id of the last interaction on the previous page.'),
        }),
        response: { 200: z.array(interactionView), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { limit, before, runId, ...query } = request.query
      const owner = callerOf(request, services).userId
      const conversationId = await services.conversations.idFilter(owner, query.conversationId)
      if (conversationId === null) return []
      const { rows, more } = await services.interactions.list({
        owner,
        limit,
        ...defined({
          conversationId,
          runId,
          before,
          kind: query.kind,
          status: query.status === undefined ? undefined : [query.status],
        }),
      })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      return rows.map(toInteractionView)
    },
  )
  server.post(
    '/v1/interactions/:id/reply',
    {
      schema: {
        tags: ['Feed'],
        summary: 'Answer a question, of a conversation or of a job',
        params: z.object({ id: idParam }),
        querystring: userIdQuery,
        body: z.object({
          response: jsonValue.describe('The answer: a text, one of the options, or an object with the fields.'),
          userId: z.string().max(200).nullish(),
        }),
        response: {
          200: interactionView,
          400: errorBody,
          404: errorBody,
          409: errorBody.describe('Already answered or expired, or the job asks another question first.'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      const { response } = request.body
      const asked = await services.interactions.get(caller, request.params.id)
      if (asked.kind !== 'question') throw notAQuestion(asked.kind)
      // The questions of a job are answered in their order, which its service knows.
      if (asked.conversationId === null) {
        const run = await services.runs.get(caller, asked.runId)
        await services.jobs.reply(run, run.owner, { interactionId: asked.number, response, key: undefined })
      } else await services.confirmations.confirm(caller, asked.id, { answer: response })
      return toInteractionView(await services.interactions.get(caller, asked.id))
    },
  )
}

function notAQuestion(kind: 'confirmation' | 'client_tool'): AppError {
  const instead =
    kind === 'confirmation'
      ? 'POST /v1/tool-confirmations/{id}/confirm or /reject'
      : 'POST /v1/agent/runs/{runId}/tool-results'
  return new AppError('invalid_request', `This interaction is a ${kind}, not a question. Send ${instead} instead.`)
}
