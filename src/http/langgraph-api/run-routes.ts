// Runs of LangGraph: start one and stream it, wait for it or let it work; answer its interrupts; join, list,
// read and cancel runs. A run without a thread gets a new conversation.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { addressSpelling, beginning, compareCursors, type Cursor } from '../../dialects/cursor.ts'
import { langGraphDialect, openInterrupts, type StreamMode } from '../../dialects/langgraph/langgraph.ts'
import { sseFrame } from '../../dialects/sse-encoding.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue, RunStatus } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import { defined } from '../../kit/defined.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { requestedCursor } from '../cursor.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { callerOf, idParam, type Server, type Services } from '../routes.ts'
import { sendEmptyStream, streamRun } from '../stream-run.ts'
import { type StartedRun, refuseResume, startedBy, startHeaders, startOrResume } from '../start-or-resume.ts'
import { foldStoredFrames, type StoredFrame } from '../stored-frames.ts'
import { requestSignal } from '../request-signal.ts'
import { lastResumedAt } from '../parked-runs.ts'
import { resumeRun } from './resume.ts'
import {
  checkRunBody,
  modesOf,
  modesOfRun,
  notInSubset,
  resumeOf,
  type RunBody,
  runBody,
  startRequestOf,
  streamModeQuery,
} from './run-body.ts'
import { checkpointIdOf, langGraphRun, readLangGraphRun, threadMessages, threadSummary } from './thread-views.ts'

const threadParams = z.object({ threadId: idParam })
const runParams = z.object({ threadId: idParam, runId: idParam })
const joinQuery = z
  .object({ stream_mode: streamModeQuery, cancel_on_disconnect: z.string().max(10).optional() })
  .loose()

/** A run that a request began, or one whose interrupts it answered. */
type Begun = {
  run: RunRow
  started: boolean
  /** The last event before the answer; the beginning for a new run. */
  cursor: Cursor
}

type LangGraphStream = {
  modes: readonly StreamMode[]
  cursor: Cursor
  cancels: boolean
  /** The stream does not end at interrupts up to this event. */
  decidedUpTo: number
}

export function langGraphRunRoutes(server: Server, services: Services): void {
  const { runs, conversations, journal } = services
  const schema = { hide: true }
  const threadPath = '/langgraph/threads/:threadId/runs'
  const starts: { path: string; thread: boolean }[] = [
    { path: threadPath, thread: true },
    { path: '/langgraph/runs', thread: false },
  ]

  for (const { path, thread } of starts) {
    const withBody = {
      schema: { ...schema, headers: startHeaders, body: runBody, ...(thread ? { params: threadParams } : {}) },
    }
    const threadIdOf = (request: FastifyRequest) =>
      thread ? (request.params as { threadId: string }).threadId : undefined

    server.post(path, withBody, async (request, reply) => {
      const { run } = await begin(request, request.body, threadIdOf(request))
      return await reply.headers(locationOf(run)).send(langGraphRun(run))
    })

    server.post(`${path}/wait`, withBody, async (request, reply) => {
      const { run, started, cursor } = await begin(request, request.body, threadIdOf(request))
      const cancels = cancelsOnDisconnect(
        services,
        defined({ onDisconnect: request.body.on_disconnect ?? undefined }),
        started,
      )
      reply.headers(locationOf(run))
      return await reply.send(await resultOf(reply, run, { afterSeq: cursor.seq, cancels }))
    })

    server.post(`${path}/stream`, withBody, async (request, reply) => {
      const modes = modesOf(request.body.stream_mode, modesOfRun)
      const begun = await beginOrResume(request, request.body, threadIdOf(request))
      if (begun === null) return await sendEmptyStream(reply, {})
      const { run, started, cursor } = begun
      const cancels = cancelsOnDisconnect(
        services,
        defined({ onDisconnect: request.body.on_disconnect ?? undefined }),
        started,
      )
      return await stream(request, reply, run, { modes, cursor, cancels, decidedUpTo: cursor.seq })
    })
  }

  const listQuery = z.object({
    limit: z.coerce.number().int().min(1).max(100).default(10),
    offset: z.coerce.number().int().min(0).max(10_000).default(0),
    status: z.string().max(20).optional(),
  })
  server.get(threadPath, { schema: { ...schema, params: threadParams, querystring: listQuery } }, async (request) => {
    const { limit, offset, status } = request.query
    const row = await conversations.get(callerOf(request, services).userId, request.params.threadId)
    const { rows } = await runs.list({
      owner: row.owner,
      conversationId: row.id,
      limit: offset + limit,
      ...defined({ status: status === undefined ? undefined : runStatusesOf(status) }),
    })
    return rows.slice(offset).map(langGraphRun)
  })

  server.get(`${threadPath}/:runId`, { schema: { ...schema, params: runParams } }, async (request) =>
    langGraphRun(await ownRunOf(request, request.params)),
  )

  server.get(
    `${threadPath}/:runId/join`,
    { schema: { ...schema, params: runParams, querystring: joinQuery } },
    async (request, reply) => {
      const run = await ownRunOf(request, request.params)
      return await reply.send(
        await resultOf(reply, run, { afterSeq: 0, cancels: request.query.cancel_on_disconnect === '1' }),
      )
    },
  )

  server.get(
    `${threadPath}/:runId/stream`,
    { schema: { ...schema, params: runParams, querystring: joinQuery } },
    async (request, reply) => {
      const modes = modesOf(request.query.stream_mode)
      const run = await ownRunOf(request, request.params)
      const cursor = cursorOf(request.headers['last-event-id'], run)
      const cancels = request.query.cancel_on_disconnect === '1'
      const isAtInterrupt = cursor.seq === run.lastSeq && (await isInterrupted(run))
      // An interrupted run is over for the client, also if its connection broke right before the end of the stream.
      if (isAtInterrupt && (await hasAllFrames(cursor, run)))
        return await sendEmptyStream(reply, locationOf(run, modes))
      // It broke between the frames of the interrupt: the client gets the others, and the stream ends.
      const decidedUpTo = isAtInterrupt ? cursor.seq - 1 : cursor.seq
      return await stream(request, reply, run, { modes, cursor, cancels, decidedUpTo })
    },
  )

  const cancelQuery = z.object({
    wait: z.string().max(10).optional(),
    action: z.enum(['interrupt', 'rollback']).default('interrupt'),
  })
  server.post(
    `${threadPath}/:runId/cancel`,
    { schema: { ...schema, params: runParams, querystring: cancelQuery } },
    async (request, reply) => {
      if (request.query.action === 'rollback') {
        throw notInSubset('action "rollback" is not served; "interrupt" cancels the run and keeps its messages.')
      }
      const { owner, id } = await ownRunOf(request, request.params)
      const { run } = await runs.cancel(owner, id, null)
      // 202 also if the client wanted to wait and the run needs longer to end: the cancel request is stored.
      return await reply.code(request.query.wait === '1' && run.endedAt !== null ? 204 : 202).send(null)
    },
  )

  server.delete(`${threadPath}/:runId`, { schema: { ...schema, params: runParams } }, async (request) => {
    await ownRunOf(request, request.params)
    throw notInSubset('A run cannot be deleted alone; delete its thread.')
  })

  /** Whether a reader at this cursor has every frame of its event. */
  async function hasAllFrames(cursor: Cursor, run: RunRow): Promise<boolean> {
    if (cursor.index === null) return true
    let last = beginning
    const frame = (stored: StoredFrame) => void (last = stored.cursor)
    await foldStoredFrames(journal, run.id, langGraphDialect(), { frame }, cursor.seq)
    return compareCursors(cursor, last) >= 0
  }

  async function isInterrupted(run: RunRow): Promise<boolean> {
    return run.status === 'waiting_user' && (await runs.openInteractions(run)).length > 0
  }

  async function ownRunOf(
    request: FastifyRequest,
    { threadId, runId }: { threadId: string; runId: string },
  ): Promise<RunRow> {
    const caller = callerOf(request, services)
    const run = await runs.get(caller, runId)
    // A run without a conversation is shown as a thread of its own.
    if (run.conversationId === null && threadId === run.id) return run
    const conversation = await conversations.find(run.owner, threadId)
    if (conversation === undefined || conversation.id !== run.conversationId) {
      throw new AppError('run_not_found', `The thread has no run ${JSON.stringify(runId)}.`)
    }
    return run
  }

  async function begin(request: FastifyRequest, body: RunBody, threadId: string | undefined): Promise<Begun> {
    const caller = callerOf(request, services)
    const resume = resumeIn(body)
    if (resume !== undefined) return await answer(caller, threadId, resume)
    refuseResume(request.headers)
    return { ...(await start(caller, body, threadId, keyOf(request, body, threadId))), cursor: beginning }
  }

  /** Like `begin`, for a stream. Null if the client has all of the run that it resumes. */
  async function beginOrResume(
    request: FastifyRequest,
    body: RunBody,
    threadId: string | undefined,
  ): Promise<Begun | null> {
    const caller = callerOf(request, services)
    const resume = resumeIn(body)
    if (resume !== undefined) return await answer(caller, threadId, resume)
    const idempotency = keyOf(request, body, threadId)
    const resumable = {
      owner: caller.userId,
      idempotency,
      begin: () => start(caller, body, threadId, idempotency),
    }
    return await startOrResume(services, request.headers, resumable, langGraphDialect())
  }

  function resumeIn(body: RunBody): JsonValue | undefined {
    checkRunBody(body)
    modesOf(body.stream_mode)
    return resumeOf(body)
  }

  async function start(
    caller: Caller,
    body: RunBody,
    threadId: string | undefined,
    idempotency: StartRequest['idempotency'],
  ): Promise<StartedRun> {
    const owner = caller.userId
    if (idempotency !== null) {
      // Looked up first: the run of the first request has changed the thread.
      const run = await runs.findStarted(owner, startedBy(idempotency))
      if (run !== undefined) return { run, started: false }
    }
    const request = await startRequestOf(body, { owner, threadId, files: services.files, idempotency })
    const conversation = threadId === undefined ? undefined : await checkThread(caller, threadId, body)
    const isLeft = conversation !== undefined && (await isInterruptedThread(conversation))
    const { run, outcome } = await runs.start(isLeft ? { ...request, whenBusy: 'cancel' } : request)
    return { run, started: outcome === 'accepted' }
  }

  /**
   * An interrupted run has ended for LangGraph, so no strategy waits for it. A new message cancels it: without this, the
   * message would wait until the interrupts expire.
   */
  async function isInterruptedThread({ id }: ConversationRow): Promise<boolean> {
    const open = await conversations.openRuns({ id })
    return open.length > 0 && open.every(({ status }) => status === 'waiting_user')
  }

  /** The thread must exist unless the request may create it, and a checkpoint must be the newest one. */
  async function checkThread(
    { userId }: Caller,
    threadId: string,
    body: RunBody,
  ): Promise<ConversationRow | undefined> {
    const conversation =
      body.if_not_exists === 'create'
        ? await conversations.find(userId, threadId)
        : await conversations.get(userId, threadId)
    const checkpoint = body.checkpoint?.checkpoint_id ?? body.checkpoint_id
    if (checkpoint == null || conversation === undefined) return conversation
    if (checkpoint !== checkpointIdOf(conversation, await threadMessages(services, conversation))) {
      throw notInSubset(
        'A run can only continue the newest state of a thread; leave checkpoint out, or read the state again.',
      )
    }
    return conversation
  }

  async function answer(caller: Caller, threadId: string | undefined, resume: JsonValue): Promise<Begun> {
    if (threadId === undefined)
      throw notInSubset('command.resume needs a thread; send it to /threads/{thread_id}/runs.')
    const conversation = await conversations.get(caller.userId, threadId)
    const { waiting } = await threadSummary(services, conversation)
    if (waiting === undefined || waiting.state.asked.size === 0) {
      throw new AppError('thread_not_interrupted', 'No run of the thread waits for an answer; send a message instead.')
    }
    await resumeRun(services, caller, waiting.state, resume)
    return { run: waiting.run, started: false, cursor: { seq: waiting.seq, index: null } }
  }

  /** The state of the thread after the run, as LangGraph answers `wait` and `join`. */
  async function resultOf(
    reply: FastifyReply,
    run: RunRow,
    { afterSeq, cancels }: { afterSeq: number; cancels: boolean },
  ): Promise<Record<string, unknown>> {
    const signal = requestSignal(reply, services.streams)
    const ended = await runs.settled(run, { signal, orWaiting: true, afterSeq })
    if (cancels && reply.raw.destroyed) await runs.clientLeft(run.id, run.owner)
    if (ended.status === 'failed') {
      const { code = 'internal_error', message = 'The run failed.' } = ended.error ?? {}
      return { __error__: { error: code, message } }
    }
    const { state } = await readLangGraphRun(services, run)
    const messages = [...(await earlierOf(run)), ...state.messages]
    const interrupts = ended.status === 'waiting_user' ? openInterrupts(state) : []
    return { messages, ...(interrupts.length === 0 ? {} : { __interrupt__: interrupts }) }
  }

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    run: RunRow,
    { modes, cursor, cancels, ...known }: LangGraphStream,
  ): Promise<FastifyReply> {
    const decidedUpTo = Math.max(known.decidedUpTo, await lastResumedAt(journal, run.id))
    const dialect = langGraphDialect({ modes, earlier: await earlierOf(run), decidedUpTo })
    // A stream that does not begin with the run still has to say which run it is.
    const metadata = { run_id: run.id, thread_id: threadIdOfRun(run), attempt: run.attempt }
    const opening = cursor.seq === 0 ? undefined : sseFrame(null, 'metadata', JSON.stringify(metadata))
    const headers = locationOf(run, modes)
    return await streamRun(services, request, reply, {
      run,
      dialect,
      cursor,
      headers,
      cancels,
      ...defined({ opening }),
    })
  }

  /** The messages of the thread before the question of the run. */
  async function earlierOf(run: RunRow) {
    if (run.conversationId === null) return []
    const { events } = await journal.readEvents(run.id, 0, 1)
    const [first] = events
    const question = first?.type === 'run.accepted' ? first.data.userMessageId : null
    return question === null ? [] : await threadMessages(services, { id: run.conversationId }, question)
  }
}

/** The thread is not part of the body, and the same body in another thread is another request. */
function keyOf({ headers }: FastifyRequest, body: RunBody, threadId: string | undefined): StartRequest['idempotency'] {
  const key = headers['idempotency-key']
  return typeof key === 'string' ? { key, route: 'POST /langgraph/runs', body: { threadId, body } } : null
}

function threadIdOfRun({ id, conversationId }: RunRow): string {
  return conversationId === null ? id : shownConversationId(conversationId)
}

/**
 * The client reads the ids of the run from `Content-Location`, and reconnects to `Location`, which is relative to the address of
 * the API. `Location` repeats the stream modes, because the client does not send them again.
 */
function locationOf(run: RunRow, modes?: readonly StreamMode[]): Record<string, string> {
  const path = `/threads/${encodeURIComponent(threadIdOfRun(run))}/runs/${encodeURIComponent(run.id)}`
  const query = modes?.map((mode) => `stream_mode=${encodeURIComponent(mode)}`).join('&') ?? ''
  return { 'content-location': path, ...(modes === undefined ? {} : { location: `${path}/stream?${query}` }) }
}

/** `-1` is LangGraph's word for the beginning. The frames of an event are not checked: they depend on the modes. */
function cursorOf(lastEventId: string | string[] | undefined, run: RunRow): Cursor {
  if (lastEventId === undefined || lastEventId === '-1') return beginning
  const cursor = requestedCursor(addressSpelling, lastEventId)
  if (cursor.seq > run.lastSeq) {
    throw new AppError(
      'unknown_cursor',
      `The run has no event ${cursor.seq}; send the id of the last event you got, or -1.`,
    )
  }
  return cursor
}

const statusesOfRuns: Readonly<Record<string, RunStatus[]>> = {
  pending: ['queued'],
  running: ['running'],
  interrupted: ['waiting_user', 'canceled'],
  success: ['succeeded'],
  error: ['failed'],
  timeout: ['failed'],
}

function runStatusesOf(status: string): RunStatus[] {
  const known = Object.hasOwn(statusesOfRuns, status) ? statusesOfRuns[status] : undefined
  if (known === undefined) throw new AppError('invalid_request', `There is no status ${JSON.stringify(status)}.`)
  return known
}
