// The routes for AG-UI clients: run, attach again, and stop. A request with answers to interrupts
// decides them, and its stream is the rest of the run that asked.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { agUiDialect } from '../../dialects/ag-ui/ag-ui.ts'
import { addressSpelling, beginning } from '../../dialects/cursor.ts'
import { AppError } from '../../errors/app-error.ts'
import { asUser } from '../../kit/caller.ts'
import { defined } from '../../kit/defined.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { checkCursor, requestedCursor } from '../cursor.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { startedBy, startHeaders } from '../start-or-resume.ts'
import { startAndStreamChat, streamRun } from '../stream-run.ts'
import { conversationHeader, stoppedView } from '../views.ts'
import { lastResumedAt } from '../parked-runs.ts'
import { type ContinuedRun, continueRun, unanswered } from './ag-ui-answers.ts'
import { type AgUiBody, agUiBody, toAgUiStart } from './ag-ui-body.ts'
import { snapshotMessagesMax, toAgUiHistory, toolResultsOf } from './ag-ui-messages.ts'

const disconnectField = z.enum(['continue', 'cancel']).optional()

const threadParams = z.object({ threadId: idParam })

export function agUiRoutes(server: Server, services: Services): void {
  const { runs, conversations, clientTools, journal } = services

  const runSchema = {
    tags: ['AG-UI'],
    description:
      'Starts a run and streams it as AG-UI events. If the request answers interrupts, they are decided, and the stream is the rest of the run that asked. Closing the connection does not stop the run.',
    querystring: userIdQuery.extend({
      onDisconnect: disconnectField.describe(
        'What happens to the run when the client closes the connection, which is all that abortRun() does.',
      ),
    }),
    headers: startHeaders,
    body: agUiBody,
    response: {
      204: z.null().describe('You have all of the run already.'),
      400: errorBody,
      404: errorBody,
      409: errorBody,
      413: errorBody,
      429: errorBody,
      503: errorBody,
    },
  }

  server.post(
    '/v1/ag-ui',
    { schema: { ...runSchema, summary: 'Run the chat agent (AG-UI)' } },
    async (request, reply) => {
      await run(request, reply, undefined)
      return reply
    },
  )
  server.post(
    '/v1/ag-ui/:agentId',
    { schema: { ...runSchema, summary: 'Run an agent (AG-UI)', params: z.object({ agentId: idParam }) } },
    async (request, reply) => {
      await run(request, reply, request.params.agentId)
      return reply
    },
  )

  async function run(
    request: FastifyRequest<{ Body: AgUiBody; Querystring: { onDisconnect?: 'continue' | 'cancel' | undefined } }>,
    reply: FastifyReply,
    agentId: string | undefined,
  ): Promise<FastifyReply> {
    const caller = callerOf(request, services)
    const { body } = request
    const conversation = await conversations.find(caller.userId, body.threadId)
    const continued = await continuedRun(request, conversation)
    const onDisconnect = body.forwardedProps?.onDisconnect ?? request.query.onDisconnect
    if (continued !== undefined) {
      const continuedBy = { runId: body.runId, protocolVersion: body.protocolVersion ?? undefined }
      return await streamRun(services, request, reply, {
        run: continued.run,
        dialect: agUiDialect({ continuedBy }),
        cursor: { seq: continued.seq, index: null },
        headers: conversationHeader(continued.run.conversationId),
        cancels: cancelsOnDisconnect(services, defined({ onDisconnect }), true),
      })
    }
    const idempotencyKey = request.headers['idempotency-key'] as string | undefined
    const isStored = conversation !== undefined
    const start = await toAgUiStart(services, body, {
      owner: caller.userId,
      agentId,
      idempotencyKey,
      isStored,
      onDisconnect,
    })
    if (conversation !== undefined) await leaveWaitingRun(start, body, conversation)
    const headersOf = ({ conversationId }: RunRow) => conversationHeader(conversationId)
    return await startAndStreamChat(services, request, reply, { start, dialect: agUiDialect(), headersOf })
  }

  /** Undefined if the request asks something new. */
  async function continuedRun(
    request: FastifyRequest<{ Body: AgUiBody }>,
    conversation: ConversationRow | undefined,
  ): Promise<ContinuedRun | undefined> {
    const { resume, threadId, messages } = request.body
    const interrupts = resume ?? []
    const results = toolResultsOf(messages)
    const bringsResults = messages.at(-1)?.role === 'tool'
    if (interrupts.length === 0 && (!bringsResults || conversation === undefined)) return undefined
    if (conversation === undefined) {
      throw new AppError('conversation_not_found', `There is no thread ${JSON.stringify(threadId)} to resume.`)
    }
    const caller = callerOf(request, services)
    const continued = await continueRun(services, caller, conversation, { interrupts, results })
    if (continued !== undefined) return continued
    throw new AppError(
      'tool_call_not_found',
      'The thread does not wait for any of the answers in this request. Send a message with the role "user".',
    )
  }

  /**
   * A user who asks something new without the results that the last run waits for will not bring them: the page was
   * loaded again, for example. Without this, the new question would wait for them until they expire. Interrupts have to be
   * answered, as AG-UI says: a question without the answers is refused, unless the request chooses to wait for them.
   */
  async function leaveWaitingRun(start: StartRequest, body: AgUiBody, { id, owner }: ConversationRow): Promise<void> {
    if (start.whenBusy !== 'queue') return
    const waiting =
      (await clientTools.waitingRun(id)) ??
      (await conversations.openRuns({ id })).findLast(({ status }) => status === 'waiting_user')
    if (waiting === undefined) return
    // The same request, sent again, attaches to its run.
    if (start.idempotency !== null && (await runs.findStarted(owner, startedBy(start.idempotency))) !== undefined)
      return
    const asked = await runs.openInteractions(waiting)
    const open = asked.filter(({ kind }) => kind === 'client_tool')
    const isInterrupted = open.length < asked.length
    if (isInterrupted && body.forwardedProps?.whenBusy == null) throw unanswered(asked)
    if (isInterrupted || open.length === 0) return
    const results = toolResultsOf(body.messages).filter(({ toolCallId }) =>
      open.some(({ callId }) => callId === toolCallId),
    )
    if (results.length === open.length) await clientTools.resolve(asUser(owner), waiting.id, results)
    else await runs.cancel(owner, waiting.id, 'the user went on without the results of the tools of the client')
  }

  server.get(
    '/v1/ag-ui/threads/:threadId/stream',
    {
      schema: {
        tags: ['AG-UI'],
        summary: 'Attach to a thread (AG-UI)',
        description:
          'Without a cursor: for a client that knows nothing yet. The stream has the earlier messages and replays the newest run from its beginning, past the decisions that were made. With the runId of a request and a cursor: only the events after the cursor.',
        params: threadParams,
        querystring: userIdQuery.extend({
          runId: optionalFilter().describe('The run id that the client sent, or that of the server.'),
          after: optionalFilter().describe('A cursor: the id of the last frame you got. Needs runId.'),
        }),
        headers: z.object({ 'last-event-id': z.string().optional().describe('The same as after.') }).loose(),
        response: {
          204: z.null().describe('You have all of the run already.'),
          400: errorBody,
          404: errorBody,
        },
      },
    },
    async (request, reply) => {
      const conversation = await ownThread(request)
      const { runId, after } = request.query
      const cursor = requestedCursor(addressSpelling, request.headers['last-event-id'], after)
      if (cursor.seq > 0 && runId === undefined) {
        throw new AppError('unknown_cursor', 'A cursor belongs to one run: send the runId of your request as well.')
      }
      const found = await findRun(conversation, runId)
      const headers = conversationHeader(conversation.id)
      if (cursor.seq > 0) {
        const dialect = agUiDialect()
        if (await checkCursor(cursor, found, dialect, journal)) return reply.code(204).send(null)
        return await streamRun(services, request, reply, { run: found, dialect, cursor, headers })
      }
      const [history, decidedUpTo] = await Promise.all([
        historyBefore(conversation, found),
        lastResumedAt(journal, found.id),
      ])
      const dialect = agUiDialect({ history, decidedUpTo })
      return await streamRun(services, request, reply, { run: found, dialect, cursor: beginning, headers })
    },
  )

  server.post(
    '/v1/ag-ui/threads/:threadId/stop',
    {
      schema: {
        tags: ['AG-UI'],
        summary: 'Stop what runs in a thread (AG-UI)',
        description: 'Cancels every open run of the thread. `abortRun()` of the client only closes its connection.',
        params: threadParams,
        querystring: userIdQuery,
        body: z.object({ userId: z.string().max(200).nullish() }).nullish(),
        response: { 200: stoppedView, 404: errorBody },
      },
    },
    async (request) => {
      const open = await conversations.openRuns(await ownThread(request))
      return await runs.stop(open)
    },
  )

  async function ownThread(request: FastifyRequest<{ Params: { threadId: string } }>): Promise<ConversationRow> {
    return await conversations.get(callerOf(request, services).userId, request.params.threadId)
  }

  /** The newest run of the conversation, or the one with this id. */
  async function findRun({ id, owner }: ConversationRow, runId: string | undefined): Promise<RunRow> {
    const { rows } = await runs.list({ owner, conversationId: id, limit: runId === undefined ? 1 : recentRunsMax })
    for (const row of rows) {
      if (runId === undefined || row.id === runId || (await runs.specOf(row))?.agUi?.runId === runId) return row
    }
    throw new AppError(
      'run_not_found',
      runId === undefined
        ? 'The thread has no run yet; send a message to start one.'
        : `The thread has no run ${JSON.stringify(runId)} among its last ${recentRunsMax}.`,
    )
  }

  /** The messages up to the question of the run, without the answers that the run replaces. */
  async function historyBefore(conversation: ConversationRow, found: RunRow): Promise<object[]> {
    const { rows } = await conversations.messagesInAnyState(conversation, {
      limit: snapshotMessagesMax,
      before: undefined,
    })
    const replaced = new Set((await runs.specOf(found))?.supersedes ?? [])
    const shown = rows.filter(
      (row) => row.state === 'active' && !replaced.has(row.id) && (row.runId !== found.id || row.role === 'user'),
    )
    return toAgUiHistory(shown)
  }
}

/** How far back a run is looked for by the id of its client. */
const recentRunsMax = 50
