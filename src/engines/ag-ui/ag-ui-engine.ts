// An engine for any agent that speaks AG-UI: one POST per turn, answered with a stream of
// events. An interrupt ends the remote run; the decision starts the next run of the thread.
//
//   connect ─▶ handle `started` ─▶ POST ─▶ events ─▶ RUN_FINISHED ─▶ finish
//                                             └─ interrupt ─▶ handle `interrupted` ─▶ a person decides
//                         handle `resuming` ─▶ POST with `resume` ◀─┘
//
// AG-UI cannot re-attach to a stream. After a crash, a turn that was `started` or `resuming`
// has an unknown outcome; one that waits for a person goes on.

import type { TurnEngine, TurnPart, TurnRequest } from '../engine.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue, Usage } from '../../journal/event.ts'
import { sumOfReports } from '../../journal/usage.ts'
import type { Clock } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'
import { sleep } from '../../kit/sleep.ts'
import { Connection, type Target } from './connection.ts'
import { EventDecoder } from './event-decoder.ts'
import { EventTranslator, type RemoteEnd } from './event-translator.ts'
import { fittingFinished, fittingHandle, type Interrupted, memoryOf, readHandle, type ThreadMemory } from './handle.ts'
import { type HeaderEnvironment, headersOf, type HeaderSettings, headersProblem, withoutSecrets } from './headers.ts'
import { isApproval, questionParts, readInterrupts, type Resume, resumeWith } from './interrupts.ts'
import { mergedIds } from './message-ids.ts'
import { RemoteState } from './remote-state.ts'
import { runAgentInputOf, threadOf } from './run-agent-input.ts'

export type AgUiSettings = { url: string; headers?: HeaderSettings | undefined }

export type AgUiOptions = {
  /** The name of the engine, and of the agent in error messages. */
  name: string
  /** Read for each request. */
  settings(): AgUiSettings
  environment: HeaderEnvironment
  clock: Clock
}

/** Pauses between attempts to send decisions to an agent that cannot be reached; the person has already decided. */
const resumePausesMs = [500, 1_000, 2_000, 4_000]

/** How long a call is held back, because the run may stop at once for consent to it. */
const interruptFollowsMs = 150

export function createAgUiEngine(options: AgUiOptions): TurnEngine {
  /** Connections of turns under way, by remote run. Closing one is the only way to stop the remote agent. */
  const open = new Map<string, Connection>()
  return {
    kind: 'turn',
    name: options.name,
    canEditInput: true,
    async *turn(request, handle, decisions, signal) {
      const known = handle == null ? undefined : readHandle(handle)
      if (known?.state === 'started' || known?.state === 'resuming') throw outcomeUnknown(options.name)
      if (known !== undefined) yield [{ type: 'attached', replays: 'nothing' }]
      if (known?.state === 'finished') {
        yield [{ type: 'finish', reason: 'stop' }]
        return
      }
      let before: Interrupted | undefined = known
      for (;;) {
        let resume: Resume | undefined
        if (before !== undefined) {
          yield questionParts(before)
          resume = resumeWith(before, decisions)
        }
        const remote = new RemoteRun(options, request, before, resume)
        before = yield* remote.run(open, signal)
        if (before === undefined) return
      }
    },
    abort(handle) {
      const { state, runId } = readHandle(handle)
      const connection = open.get(runId)
      open.delete(runId)
      connection?.close()
      if (connection !== undefined || state === 'interrupted' || state === 'finished') return Promise.resolve()
      return Promise.reject(new Error('AG-UI cannot stop a run whose connection is gone'))
    },
  }
}

/** A client that shares a state sends all of it with each request, so it counts more than what the remote agent had. */
function stateOfClient({ spec }: TurnRequest): JsonValue | undefined {
  const state = spec.agUi?.state
  const isEmpty = typeof state === 'object' && state !== null && Object.keys(state).length === 0
  return isEmpty ? undefined : state
}

/** One request to the remote agent, and its answer. */
class RemoteRun {
  private readonly options: AgUiOptions
  private readonly request: TurnRequest
  private readonly resume: Resume | undefined
  private readonly ids: { threadId: string; runId: string; round: number }
  private readonly openCalls: readonly string[]
  /** What the requests before this one have used in the same turn. */
  private readonly usedBefore: Usage | undefined
  private readonly memory: ThreadMemory
  private readonly state: RemoteState
  private readonly url: URL
  private readonly headers: Record<string, string>

  constructor(options: AgUiOptions, request: TurnRequest, before: Interrupted | undefined, resume: Resume | undefined) {
    const { url, headers } = options.settings()
    const problem = headersProblem(headers, options.environment)
    if (problem !== null)
      throw new AppError('engine_unavailable', `The agent ${options.name} cannot be used: ${problem}.`)
    this.options = options
    this.request = request
    this.resume = resume
    const round = (before?.round ?? 0) + 1
    this.ids = {
      threadId: before?.threadId ?? threadOf(request),
      // The remote agent wants a new id for each request.
      runId: round === 1 ? request.runId : `${request.runId}-${round}`,
      round,
    }
    this.openCalls = before?.openCalls ?? []
    this.usedBefore = before?.usage
    this.memory = before ?? memoryOf(request.previous, this.ids.threadId)
    const own = before === undefined ? stateOfClient(request) : undefined
    this.state = new RemoteState(own ?? this.memory.remoteState ?? {})
    this.url = new URL(url)
    this.headers = headersOf(headers, options.environment)
  }

  /** Returns the interrupt that the run ended with; undefined if the turn is finished. */
  async *run(
    open: Map<string, Connection>,
    signal: AbortSignal,
  ): AsyncGenerator<TurnPart[], Interrupted | undefined, undefined> {
    const { ids, resume, options } = this
    const connection = await this.connect(signal)
    let isSent = false
    let isOver = false
    try {
      yield [{ type: 'handle', handle: { ...ids, state: resume === undefined ? 'started' : 'resuming' } }]
      isSent = true
      open.set(ids.runId, connection)
      connection.send()
      yield* this.checkAnswer(connection, signal)
      if (resume !== undefined && resume.parts.length > 0) yield resume.parts
      const translator = new EventTranslator(this.state, this.request.messages, this.openCalls)
      const end = yield* readEvents(connection, translator, signal)
      isOver = true
      connection.close()
      open.delete(ids.runId)
      return yield* this.settle(end, translator)
    } catch (error) {
      // An aborted signal detaches; after any other error the remote agent must not go on unseen.
      isOver ||= !signal.aborted
      if (isOver) connection.close()
      throw error
    } finally {
      // The entry stays until `abort` had its chance to close the connection.
      if (!isSent) connection.close()
      else if (!isOver) connection.detach(() => open.delete(ids.runId))
      else if (open.has(ids.runId)) options.clock.after(60_000, () => open.delete(ids.runId))
    }
  }

  private async connect(signal: AbortSignal): Promise<Connection> {
    const { options, ids, resume } = this
    const input = runAgentInputOf(this.request, {
      threadId: ids.threadId,
      runId: ids.runId,
      state: this.state.value ?? {},
      openCalls: this.openCalls,
      messageIds: this.memory.messageIds,
      ...defined({ resume: resume?.entries }),
    })
    const body = JSON.stringify(input)
    const target: Target = {
      url: this.url,
      headers: this.headers,
      name: options.name,
      clock: options.clock,
    }
    for (const pauseMs of resume === undefined ? [] : resumePausesMs) {
      try {
        return await Connection.open(target, body, signal)
      } catch {
        signal.throwIfAborted()
        await sleep(options.clock, pauseMs, signal)
      }
    }
    return await Connection.open(target, body, signal)
  }

  /** Throws if the remote agent does not answer with a stream of events. */
  private async *checkAnswer(connection: Connection, signal: AbortSignal): AsyncGenerator<TurnPart[], void, undefined> {
    const { name } = this.options
    const { status, contentType } = await connection.answered(signal)
    if (status >= 200 && status <= 299 && /^$|^text\/event-stream\b/i.test(contentType)) return
    const reason = reasonIn(await connection.readReason(signal))
    const said = reason === '' ? '' : ` It said: ${withoutSecrets(reason, this.headers)}`
    if (status === 503 || status === 429) {
      // The request was not taken, so nothing remote was started and another engine may answer.
      if (this.resume === undefined) yield [{ type: 'handle', handle: null }]
      throw unavailable(`The remote agent ${name} takes no requests now (HTTP ${status}).${said}`)
    }
    if (status >= 500) throw unavailable(`The remote agent ${name} failed before it answered (HTTP ${status}).${said}`)
    if (status >= 200 && status <= 299) {
      const type = contentType.slice(0, 100)
      throw failed(`The remote agent ${name} answered with ${type} instead of text/event-stream; check its url.`)
    }
    if (status >= 300 && status <= 399) {
      throw failed(`The remote agent ${name} answered with a redirect (HTTP ${status}), which is not followed.`)
    }
    const hint = status === 401 || status === 403 ? ' Check the headers in its agent.json.' : ''
    throw failed(`The remote agent ${name} refused the request (HTTP ${status}).${hint}${said}`)
  }

  private async *settle(
    end: RemoteEnd,
    translator: EventTranslator,
  ): AsyncGenerator<TurnPart[], Interrupted | undefined, undefined> {
    const usage = sumOfReports(this.usedBefore, end.usage)
    if (end.type === 'failed') {
      if (usage !== undefined) yield [{ type: 'spent', usage }]
      const code = end.code === undefined ? undefined : withoutSecrets(end.code, this.headers, 100)
      const message = withoutSecrets(end.message, this.headers)
      throw new AppError(
        'engine_failed',
        `The remote agent ${this.options.name} failed${code === undefined ? '' : ` (${code})`}: ${message}`,
        code === undefined ? {} : { details: { code } },
      )
    }
    const memory = {
      messageIds: mergedIds(this.memory.messageIds, translator.messageIds()),
      ...defined({ remoteState: this.state.value }),
    }
    if (end.type === 'finished') {
      const handle = fittingFinished({ ...this.ids, state: 'finished', ...memory })
      yield [{ type: 'handle', handle: handle as JsonValue }]
      yield [{ type: 'finish', reason: 'stop', ...defined({ usage }) }]
      return undefined
    }
    const interrupts = readInterrupts(end.outcome, (callId) => translator.findCall(callId))
    const asked = interrupts.flatMap(({ toolCallId }) => toolCallId ?? [])
    const interrupted = fittingHandle({
      ...this.ids,
      state: 'interrupted',
      interrupts,
      // A call that waits may not have been announced.
      openCalls: [...new Set([...translator.openCalls(), ...asked])],
      ...memory,
      ...defined({ usage }),
    })
    // A call that waits for consent is reported with the question, if the handle has its arguments.
    const waits = (callId: string) =>
      interrupted.interrupts.some(
        (interrupt) => interrupt.toolCallId === callId && interrupt.input !== undefined && isApproval(interrupt),
      )
    yield translator.release(waits)
    yield [{ type: 'handle', handle: interrupted as JsonValue }]
    return interrupted
  }
}

async function* readEvents(
  connection: Connection,
  translator: EventTranslator,
  signal: AbortSignal,
): AsyncGenerator<TurnPart[], RemoteEnd, undefined> {
  const decoder = new EventDecoder()
  try {
    for (;;) {
      const bytes = translator.holdsCalls
        ? await connection.readWithin(interruptFollowsMs, signal)
        : await connection.read(signal)
      if (bytes === 'late') {
        yield translator.release()
        continue
      }
      const events = bytes === undefined ? decoder.end() : decoder.feed(bytes)
      // Without parts it is still a sign of life.
      yield translator.translate(events)
      const { end } = translator
      if (end !== undefined && end.type !== 'interrupted') yield translator.release()
      if (end !== undefined) return end
      decoder.check()
      if (bytes === undefined) {
        throw new AppError('engine_stream_incomplete', 'The remote agent ended its answer without RUN_FINISHED.')
      }
    }
  } catch (error) {
    // A call that was held back may have happened.
    yield translator.release()
    throw error
  }
}

/** The reason in the body of an error: a field of JSON, or the text. */
function reasonIn(body: string): string {
  try {
    const { message, error, detail } = JSON.parse(body) as Record<string, unknown>
    const inner = typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : error
    const found = [message, inner, detail].find((text) => typeof text === 'string')
    return typeof found === 'string' ? found : body
  } catch {
    return /^\s*</.test(body) ? '' : body
  }
}

function outcomeUnknown(name: string): AppError {
  return new AppError(
    'engine_outcome_unknown',
    `The connection to the remote agent ${name} was lost in the middle of its turn, and AG-UI cannot take it up again. What it did may have happened; ask it before you try again.`,
  )
}

function unavailable(message: string): AppError {
  return new AppError('engine_unavailable', message, { retryable: true })
}

function failed(message: string): AppError {
  return new AppError('engine_failed', message)
}
