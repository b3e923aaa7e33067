// /v1/agent/runs: list runs, read the status, timeline or a long tool output of one, attach
// to its stream again, and cancel it.

import { z } from 'zod'
import { openTimeline, type TimelineEntry, timelineEntries } from '../../dialects/agent/timeline.ts'
import { addressSpelling } from '../../dialects/cursor.ts'
import { visibleEvents } from '../../dialects/undecided-arm.ts'
import { AppError } from '../../errors/app-error.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import { cutText } from '../../kit/cut-text.ts'
import { defined } from '../../kit/defined.ts'
import type { RunStatus } from '../../journal/event.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { checkCursor, requestedCursor } from '../cursor.ts'
import { eventPages } from '../../journal/event-pages.ts'
import { dialectNamed } from '../formats.ts'
import { inertTextPolicy } from '../inert-text.ts'
import { linkNext } from '../next-link.ts'
import { PageWindow } from '../page-window.ts'
import type { Caller } from '../../kit/caller.ts'
import {
  callerOf,
  errorBody,
  idParam,
  optionalFilter,
  ownRun,
  type Server,
  type Services,
  userIdQuery,
} from '../routes.ts'
import { streamRun } from '../stream-run.ts'
import { runStatusWord, runView, toClientToolCalls, toRun } from '../views.ts'

const runParams = z.object({ runId: idParam })

/** The maximum, and the default, of `limit`. */
const timelineEntriesMax = 10_000

const statusWords: Readonly<Record<string, RunStatus>> = {
  queued: 'queued',
  running: 'running',
  awaiting_input: 'waiting_user',
  waiting_user: 'waiting_user',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'canceled',
  canceled: 'canceled',
}

/** How much of an input a list shows. */
const inputCharsMax = 200

const listedRunView = runView.extend({
  input: z.string().optional().describe(`Its first ${inputCharsMax} characters, with include=input.`),
})

const cancelView = runView.extend({ accepted: z.boolean() })

const timelineView = z
  .object({
    runId: z.string(),
    agentId: z.string(),
    conversationId: z.string().nullable(),
    status: z.string(),
    startedAt: z.string(),
    startedAtMs: z.number(),
    endedAt: z.string().optional(),
    endedAtMs: z.number().optional(),
    events: z.array(
      z.object({
        seq: z.number().describe('The number of the entry in the timeline: 1, 2, 3…'),
        id: z.string().describe('The cursor of the frame; you can send it as Last-Event-ID.'),
        event: z.string(),
        at: z.string(),
        atMs: z.number(),
        payload: z.unknown(),
      }),
    ),
    hasMore: z.boolean(),
    skipped: z.number().describe('How many stored rows could no longer be read.'),
  })
  .meta({ id: 'Timeline' })

export function runRoutes(server: Server, services: Services): void {
  const { journal, runs } = services

  server.get(
    '/v1/agent/runs',
    {
      schema: {
        tags: ['Agent'],
        summary: 'List your runs, newest first',
        querystring: userIdQuery.extend({
          conversationId: optionalFilter(),
          status: optionalFilter().describe(
            'One or more of queued, running, awaiting_input, succeeded, failed, cancelled; comma-separated.',
          ),
          limit: z.coerce.number().int().min(1).max(200).default(50),
          before: optionalFilter().describe('The runId of the last run on the previous page.'),
          include: z.enum(['input']).optional().describe('Adds the beginning of the input of each run.'),
        }),
        response: { 200: z.array(listedRunView), 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { status, limit, before } = request.query
      const conversationId = await services.conversations.idFilter(userId, request.query.conversationId)
      if (conversationId === null) return []
      const { rows, more } = await runs.list({
        owner: userId,
        limit,
        ...defined({ conversationId, status: status === undefined ? undefined : statusesOf(status), before }),
      })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      const inputs = request.query.include === 'input' ? await Promise.all(rows.map(inputOf)) : []
      return (await Promise.all(rows.map(view))).map((run, at) => ({ ...run, ...defined({ input: inputs[at] }) }))
    },
  )

  server.get(
    '/v1/agent/runs/:runId',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The status of a run',
        params: runParams,
        querystring: userIdQuery,
        response: { 200: runView, 404: errorBody },
      },
    },
    async (request) => {
      const run = await ownRun(request, services, request.params.runId)
      return { ...(await view(run)), ...(await waitingCalls(run)) }
    },
  )

  server.get(
    '/v1/agent/runs/:runId/timeline',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Everything that happened in a run',
        params: runParams,
        querystring: userIdQuery.extend({
          after: z.coerce.number().int().min(0).default(0).describe('Only entries after this seq.'),
          limit: z.coerce.number().int().min(1).max(timelineEntriesMax).default(timelineEntriesMax),
        }),
        response: { 200: timelineView, 404: errorBody },
      },
    },
    async (request, reply) => {
      const run = await timelineRun(callerOf(request, services), request.params.runId)
      const { after, limit } = request.query
      const timeline = await readTimeline(run, after, limit)
      if (timeline.hasMore) linkNext(request, reply, { after: timeline.events.at(-1)?.seq ?? after })
      return timeline
    },
  )

  server.get(
    '/v1/agent/runs/:runId/stream',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Attach to a run again',
        description:
          'Sends everything after the cursor, then follows the run live. If both Last-Event-ID and after are sent, the larger one is used. 204 if the run has ended and nothing follows the cursor.',
        params: runParams,
        querystring: userIdQuery.extend({
          format: z.string().optional(),
          after: z
            .string()
            .optional()
            .describe('The id of the last frame you received; send 0 or leave it out to get all frames.'),
        }),
        response: {
          204: z.null().describe('The run has ended and you have all of it.'),
          400: errorBody,
          404: errorBody,
        },
      },
    },
    async (request, reply) => {
      const dialect = dialectNamed(request.query.format)
      const cursor = requestedCursor(addressSpelling, request.headers['last-event-id'], request.query.after)
      const run = await ownRun(request, services, request.params.runId)
      if (await checkCursor(cursor, run, dialect, journal)) return reply.code(204).send(null)
      return await streamRun(services, request, reply, { run, dialect, cursor })
    },
  )

  server.get(
    '/v1/agent/runs/:runId/outputs/:outputId',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The full text of a tool output that was too long for the journal',
        params: runParams.extend({ outputId: idParam }),
        querystring: userIdQuery,
        response: { 200: z.string(), 404: errorBody },
      },
    },
    async (request, reply) => {
      const run = await ownRun(request, services, request.params.runId)
      const output = await runs.outputOf(run, request.params.outputId)
      if (output === undefined) {
        throw new AppError('run_output_not_found', `The run has no output ${JSON.stringify(request.params.outputId)}.`)
      }
      return reply
        .header('content-type', 'text/plain; charset=utf-8')
        .header('content-security-policy', inertTextPolicy)
        .serializer((body: string) => body)
        .send(output)
    },
  )

  server.post(
    '/v1/agent/runs/:runId/cancel',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Cancel a run',
        description:
          '200 if the run has ended; accepted is false if it had already ended in another way. 202 if the run needs more than 10 seconds to end: the cancel request is stored (cancelRequested), no new model or tool call starts, and status is the current status.',
        params: runParams,
        querystring: userIdQuery,
        body: z.object({ reason: z.string().max(500).nullish(), userId: z.string().max(200).nullish() }).nullish(),
        response: { 200: cancelView, 202: cancelView, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { owner, id } = await ownRun(request, services, request.params.runId)
      const { run, accepted } = await runs.cancel(owner, id, request.body?.reason ?? null)
      return reply.code(run.endedAt === null ? 202 : 200).send({ ...(await view(run)), accepted })
    },
  )

  async function view(run: RunRow): Promise<z.infer<typeof runView>> {
    return toRun(run, run.usage !== null && (await services.comparisons.isUndecided(run.id)))
  }

  async function inputOf(run: RunRow): Promise<string | undefined> {
    const [first] = (await journal.readEvents(run.id, 0, 1)).events
    return first?.type === 'run.accepted' ? (cutText(first.data.input, inputCharsMax)[0] ?? '') : undefined
  }

  async function waitingCalls(run: RunRow): Promise<Pick<z.infer<typeof runView>, 'clientToolCalls'>> {
    if (run.status !== 'waiting_user') return {}
    const calls = await services.clientTools.openOf(run)
    return calls.length === 0 ? {} : { clientToolCalls: toClientToolCalls(calls) }
  }

  async function timelineRun(caller: Caller, runId: string): Promise<RunRow> {
    const run = await runs.find(caller, runId)
    if (run === undefined) {
      throw new AppError(
        'run_timeline_not_found',
        `There is no timeline for run ${JSON.stringify(runId)}: it does not exist, or is no longer kept.`,
      )
    }
    return run
  }

  async function readTimeline(run: RunRow, after: number, limit: number): Promise<z.infer<typeof timelineView>> {
    const undecided = await services.comparisons.isUndecided(run.id)
    const fold = openTimeline(run.id)
    const shown = new PageWindow<TimelineEntry>({ after, limit })
    let skipped = 0
    for await (const page of eventPages(journal, run.id)) {
      const entries: TimelineEntry[] = []
      for (const event of visibleEvents(page.events, undecided)) timelineEntries(fold, event, entries)
      for (const entry of entries) shown.add(entry)
      skipped += page.skipped
      if (shown.more) break
    }
    return {
      runId: run.id,
      agentId: run.agentId,
      conversationId: shownConversationIdOrNull(run.conversationId),
      status: runStatusWord(run.status),
      // The timeline starts when the run was accepted, because agent.start has that time.
      startedAt: isoTime(run.createdAt),
      startedAtMs: run.createdAt,
      ...(run.endedAt === null ? {} : { endedAt: isoTime(run.endedAt), endedAtMs: run.endedAt }),
      events: shown.items,
      hasMore: shown.more,
      skipped,
    }
  }
}

function statusesOf(text: string): RunStatus[] {
  return text.split(',').map((word) => {
    const status = Object.hasOwn(statusWords, word.trim()) ? statusWords[word.trim()] : undefined
    if (status === undefined) {
      throw new AppError(
        'invalid_request',
        `status: ${JSON.stringify(word.trim())} is not one of queued, running, awaiting_input, succeeded, failed, cancelled.`,
      )
    }
    return status
  })
}
