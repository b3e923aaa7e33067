// Starts one run on the gateway, or finds it again, and follows it to its end, over as many
// connections as that takes. A run is started at most once: its id is the idempotency key,
// the handle is in the journal before the request is sent, and a run whose start is uncertain
// is looked up in the session instead of being started again.

import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import { sleep } from '../../kit/sleep.ts'
import type { ModelMessage } from '../../models/model.ts'
import type { Decisions, TurnPart } from '../engine.ts'
import { ConnectFailure, ConnectionLost, type GatewayConnection, GatewayRefusal } from './gateway-connection.ts'
import { fieldsOf, listOf, textOf } from './gateway-frames.ts'
import { type BorrowedConnection, type GatewayLink } from './gateway-link.ts'
import { newInput } from './new-input.ts'
import { readRemoteHistory, type RemoteHistory } from './remote-history.ts'
import { RemoteTurn } from './remote-turn.ts'
import { TurnInbox } from './turn-inbox.ts'
import type { TurnHandle } from './turn-handle.ts'

export type FollowContext = {
  link: GatewayLink
  /** The connection on which a new run is started. */
  borrowed: BorrowedConnection | undefined
  clock: Clock
  messages: readonly ModelMessage[]
  sessionKey: string
  runKey: string
  /** The gateway's id of the run, if it is known. */
  runId: string | undefined
  isNew: boolean
  decisions: Decisions
  signal: AbortSignal
}

const historyRows = 1000
/** How long a run may be silent before the gateway is asked whether it is still at work. */
const quietMs = 15_000
/** The last event follows the end of the run's lifecycle; after this time it is taken for lost. */
const lastEventMs = 3_000
/** A run that has just ended may not be in the history yet. */
const lookTries = 4
const lookAgainMs = 500
/** Waits between attempts to reach a gateway that went away in the middle of a turn: about a minute in all. */
const reconnectWaitsMs = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000]

export async function* followRun(context: FollowContext): AsyncIterable<TurnPart[]> {
  yield* new RunFollower(context).follow()
}

class RunFollower {
  private readonly context: FollowContext
  private readonly turn: RemoteTurn
  /** The boot of the gateway to which the start was sent, while its answer is missing. */
  private sentTo: string | undefined
  private isStarted: boolean
  /** Whether the run was looked up on this connection. */
  private isCaughtUp = false
  private bootId: string | undefined

  constructor(context: FollowContext) {
    this.context = context
    this.turn = new RemoteTurn(context.runId ?? context.runKey)
    this.isStarted = !context.isNew
  }

  async *follow(): AsyncIterable<TurnPart[]> {
    const { isNew, signal } = this.context
    let { borrowed } = this.context
    try {
      if (isNew) yield [this.handle('starting')]
      for (let lost = 0; ; lost += 1) {
        if (borrowed === undefined) {
          const waited = lost === 0 ? 0 : reconnectWaitsMs[Math.min(lost, reconnectWaitsMs.length) - 1]
          borrowed = yield* this.reconnect(waited ?? 0, lost > 0)
          if (!isNew && lost === 0) yield [{ type: 'attached', replays: 'turn' }]
        }
        const { connection } = borrowed
        try {
          yield* this.followOn(connection)
          return
        } catch (error) {
          if (error instanceof GatewayRefusal && error.code !== 'UNAVAILABLE') {
            throw new AppError('engine_failed', `The OpenClaw gateway refused a request: ${error.message}`)
          }
          if (!(error instanceof ConnectionLost || error instanceof GatewayRefusal)) throw error
          signal.throwIfAborted()
          if (this.isCaughtUp) lost = 0
          if (lost >= reconnectWaitsMs.length) throw gone(error)
        }
        borrowed.release()
        borrowed = undefined
      }
    } finally {
      borrowed?.release()
    }
  }

  private handle(state: 'starting' | 'started'): TurnPart {
    const { sessionKey, runKey } = this.context
    const place = { transport: 'websocket', sessionKey, runKey } as const
    const handle: TurnHandle = state === 'starting' ? { ...place, state } : { ...place, state, runId: this.turn.runId }
    return { type: 'handle', handle }
  }

  /** Tries until the gateway can be reached again, for about a minute. */
  private async *reconnect(firstWaitMs: number, wasConnected: boolean): AsyncGenerator<TurnPart[], BorrowedConnection> {
    const { link, signal } = this.context
    await this.sleep(firstWaitMs)
    for (const waitMs of reconnectWaitsMs) {
      try {
        return await link.acquire(signal)
      } catch (error) {
        if (!(error instanceof ConnectFailure)) throw error
        // A sign of life. Before the first connection it would be taken for a success of the gateway.
        if (wasConnected) yield []
        await this.sleep(waitMs)
      }
    }
    throw gone(undefined)
  }

  private async *followOn(connection: GatewayConnection): AsyncIterable<TurnPart[]> {
    const { clock, sessionKey } = this.context
    this.isCaughtUp = false
    if (this.bootId !== undefined && this.bootId !== connection.bootId) this.turn.restartNumbering()
    this.bootId = connection.bootId
    const inbox = new TurnInbox(connection, clock, (event) => {
      if (event.type !== 'event') return true
      if (event.event === 'tick') return true
      return event.payload['runId'] === this.turn.runId || event.event === 'exec.approval.requested'
    })
    try {
      // Without these subscriptions a connection that did not start the run gets no events about its tools.
      await this.request(connection, 'sessions.subscribe', {})
      await this.request(connection, 'sessions.messages.subscribe', { key: sessionKey })
      if (this.isStarted) yield* this.catchUp(connection)
      else yield* this.start(connection)
      this.isCaughtUp = true
      yield* this.listen(connection, inbox)
      yield* this.finish(connection)
    } finally {
      inbox.close()
      if (!connection.isLost) {
        const params = { key: sessionKey }
        connection.request('sessions.messages.unsubscribe', params, new AbortController().signal).catch(() => {})
      }
    }
  }

  /** Returns when the gateway has said how the turn ended. */
  private async *listen(connection: GatewayConnection, inbox: TurnInbox): AsyncIterable<TurnPart[]> {
    const { clock, signal } = this.context
    let heardAt = clock.monotonic()
    while (this.turn.end === undefined) {
      const waitMs = this.turn.isEnding ? lastEventMs : quietMs
      let missed = false
      for (const item of await inbox.take(waitMs, signal)) {
        if (item.type === 'lost') throw new ConnectionLost('the connection to the gateway is lost')
        if (item.type === 'gap') missed = true
        if (item.type !== 'event') continue
        if (item.event !== 'tick') heardAt = clock.monotonic()
        const { parts, gap } = this.turn.event(item.event, item.payload, item.seq !== undefined)
        missed ||= gap
        yield* this.deliver(connection, parts)
      }
      if (this.turn.end !== undefined) return
      if (missed || clock.monotonic() - heardAt >= waitMs) {
        yield* this.catchUp(connection)
        heardAt = clock.monotonic()
      }
      // A sign of life.
      yield []
    }
  }

  private async *start(connection: GatewayConnection): AsyncIterable<TurnPart[]> {
    const { sessionKey, runKey, messages } = this.context
    const history = await this.history(connection)
    if (history.isKnown) {
      // The answer to the first request was lost.
      this.isStarted = true
      yield [this.handle('started')]
      yield* this.catchUp(connection)
      return
    }
    if (this.sentTo !== undefined && this.sentTo !== connection.bootId) throw unknown()
    const message = newInput(messages, !history.isEmpty)
    const isAdmin = connection.scopes.includes('operator.admin')
    if (!isAdmin && /(?:^|\s)\/[a-z]/i.test(message)) {
      throw new AppError(
        'engine_failed',
        'The OpenClaw gateway would take a part of this message for a command. Give its token the scope operator.admin, so that messages are always text.',
      )
    }
    const params = {
      sessionKey,
      message,
      idempotencyKey: runKey,
      // Never merged into a run that is at work.
      queueMode: 'followup',
      ...(isAdmin ? { suppressCommandInterpretation: true } : {}),
    }
    if (Buffer.byteLength(JSON.stringify(params)) > connection.payloadMax - 1024) {
      throw new AppError('engine_failed', 'The message is larger than the OpenClaw gateway accepts.')
    }
    this.sentTo = connection.bootId ?? ''
    let answer: unknown
    try {
      answer = await this.request(connection, 'chat.send', params)
    } catch (error) {
      if (!(error instanceof GatewayRefusal)) throw error
      throw new AppError('engine_failed', `The OpenClaw gateway refused the message: ${error.message}`)
    }
    this.isStarted = true
    const runId = textOf(fieldsOf(answer)['runId']) || runKey
    const renamed = runId !== this.turn.runId
    this.turn.runId = runId
    yield [this.handle('started')]
    if (renamed) yield* this.catchUp(connection)
  }

  /** Reads what is known about the run, and emits what is new. Sets the end of the turn if the run is over. */
  private async *catchUp(connection: GatewayConnection): AsyncIterable<TurnPart[]> {
    for (let tries = 1; ; tries += 1) {
      const { runId } = this.turn
      const outcome = fieldsOf(await this.request(connection, 'agent.wait', { runId, timeoutMs: 0 }))
      const history = await this.history(connection)
      yield* this.deliver(connection, this.turn.history(history.items))
      if (outcome['status'] === 'error') {
        const message = textOf(outcome['error']).slice(0, 500) || 'The gateway reported an error.'
        this.turn.end = { ok: false, message }
        return
      }
      if (outcome['status'] === 'ok') {
        const reply = textOf(fieldsOf(outcome['terminalReply'])['text'])
        if (this.turn.finalText === '') this.turn.finalText = reply
        this.turn.end = { ok: true, reason: 'stop' }
        return
      }
      if (history.isActive) {
        yield* this.pendingApprovals(connection)
        return
      }
      if (history.isComplete) {
        this.turn.end = { ok: true, reason: 'stop' }
        return
      }
      if (tries >= lookTries) throw unknown()
      await this.sleep(lookAgainMs)
    }
  }

  private async *pendingApprovals(connection: GatewayConnection): AsyncIterable<TurnPart[]> {
    const approvals = listOf(await this.request(connection, 'exec.approval.list', {}))
    for (const approval of approvals) yield* this.deliver(connection, this.turn.approval(fieldsOf(approval)))
  }

  /** If a person still has to decide, the consumer stops here and calls the engine again later. */
  private async *deliver(connection: GatewayConnection, parts: TurnPart[]): AsyncIterable<TurnPart[]> {
    if (parts.length > 0) yield parts
    for (const part of parts) if (part.type === 'approval') await this.decide(connection, part.key)
  }

  private async decide(connection: GatewayConnection, key: string): Promise<void> {
    const decision = this.context.decisions.of(key)
    if (decision === undefined) return
    const allowed = decision.resolution === 'confirmed'
    try {
      await this.request(connection, 'exec.approval.resolve', { id: key, decision: allowed ? 'allow-once' : 'deny' })
    } catch (error) {
      // It has expired, or was decided elsewhere; the result of the call tells.
      if (!(error instanceof GatewayRefusal)) throw error
    }
  }

  private async *finish(connection: GatewayConnection): AsyncIterable<TurnPart[]> {
    const { end } = this.turn
    if (end === undefined) return
    if (!end.ok) {
      yield this.turn.spentParts()
      throw new AppError('engine_failed', `The OpenClaw gateway failed: ${end.message}`)
    }
    const last = this.turn.finish()
    if (!last.isKnown || this.turn.hasOpenCalls()) {
      const history = await this.history(connection)
      yield this.turn.history(history.items)
      last.parts.push(...this.turn.finish().parts)
    }
    yield [...last.parts, this.turn.finishPart(end.reason)]
  }

  private async history(connection: GatewayConnection): Promise<RemoteHistory> {
    const { sessionKey, runKey } = this.context
    const payload = await this.request(connection, 'chat.history', { sessionKey, limit: historyRows })
    return readRemoteHistory(payload, this.turn.runId, runKey)
  }

  private request(connection: GatewayConnection, method: string, params: object): Promise<unknown> {
    return connection.request(method, params, this.context.signal)
  }

  private sleep(ms: number): Promise<void> {
    return sleep(this.context.clock, ms, this.context.signal)
  }
}

export async function abortRun(
  link: GatewayLink,
  clock: Clock,
  handle: Extract<TurnHandle, { transport: 'websocket' }>,
  signal: AbortSignal,
): Promise<void> {
  const runId = handle.state === 'started' ? handle.runId : handle.runKey
  const borrowed = await link.acquire(signal)
  try {
    for (let tries = 1; ; tries += 1) {
      const answer = await borrowed.connection.request('chat.abort', { sessionKey: handle.sessionKey, runId }, signal)
      // A run that is being started may not be known yet.
      if (fieldsOf(answer)['aborted'] !== false || handle.state === 'started' || tries >= lookTries) return
      await sleep(clock, lookAgainMs, signal)
    }
  } finally {
    borrowed.release()
  }
}

function unknown(): AppError {
  return new AppError(
    'engine_outcome_unknown',
    'The OpenClaw gateway does not know what became of this run; it may have been restarted.',
  )
}

function gone(cause: unknown): AppError {
  return new AppError(
    'engine_outcome_unknown',
    'The OpenClaw gateway went away during the turn and could not be reached again.',
    { cause },
  )
}
