// A dialect turns journal events into the frames of one wire format. It is a pure state
// machine (no clock, no randomness, no socket), so live streams, replay and resume use the
// same code. Each frame has an address: the `seq` of its event, or `seq.index` (from 1) if
// one event produces several frames.

import type { RunEvent } from '../journal/event.ts'
import {
  EventDelta,
  type JsonDelta,
  StoredDeltaView,
  type StoredDeltas,
  type StoredEvent,
} from '../journal/stored-events.ts'
import { addressOf, type Cursor, hasFrame } from './cursor.ts'

export type Frame = {
  /** The frame's name on the wire, in timelines and in tests. */
  readonly name: string
  readonly data: unknown
}

export type Projection<State> = { readonly state: State; readonly frames: readonly Frame[] }

export type RunIdentity = { readonly runId: string }

export interface Dialect<State = unknown> {
  readonly name: string
  /** Tells dialects with the same name apart whose bytes differ. Readers with the same name and key share encoded bytes. */
  readonly bytesKey?: string
  readonly headers: Readonly<Record<string, string>>
  /** The state before the first event. */
  open(run: RunIdentity): State
  /**
   * Folds one event into the state. A returned state is never mutated afterwards, because subscribers at the
   * same position share it.
   */
  step(state: State, event: RunEvent): Projection<State>
  encode(frame: Frame, address: string): string
  /**
   * A fast path for text deltas, which are nearly all events. Returns the same bytes as `step` and `encode` would
   * give if the delta produces exactly one frame and does not change the state; otherwise null, and the caller uses
   * `step`.
   */
  encodeDelta(state: State, delta: JsonDelta): string | null
  /** The heartbeat of a connection. It belongs to the connection and has no id. Null if the wire has no heartbeat. */
  keepAlive(nowMs: number, count: number): string | null
  readonly keepAliveTiming: KeepAliveTiming
  /**
   * What the stream does when the run waits for a person. `holds`: the stream stays open. `parks`: the stream ends, and
   * a reader that reconnects with the cursor of that event gets the events after it; so that event must have a frame.
   * `parks_for_client`: the stream ends only if the run waits for the result of a tool of the client.
   */
  readonly atDecision: 'holds' | 'parks' | 'parks_for_client'
  /** For a dialect that parks, but replays from the beginning: the stream does not end at decisions up to this event. */
  readonly decidedUpTo?: number
  /** For the reply to a client that answered only a part of what the run waits for: the stream ends at this interaction's answer. */
  readonly endsAtAnswer?: string | undefined
}

/** The setting that holds the keep-alive interval. */
export type KeepAliveInterval = 'pingMs' | 'fcmpHeartbeatMs' | 'sessionHeartbeatMs'

export type KeepAliveTiming = {
  readonly interval: KeepAliveInterval
  /** True: the interval counts from the last byte sent, so only an idle stream gets heartbeats. */
  readonly whenIdle: boolean
}

/** The default keep-alive timing. */
export const pingTiming: KeepAliveTiming = { interval: 'pingMs', whenIdle: false }

/** True if the stream ends after this event, even if the run continues. Never true for a text delta. */
export function endsStream(
  { atDecision, decidedUpTo = 0, endsAtAnswer }: Pick<Dialect, 'atDecision' | 'decidedUpTo' | 'endsAtAnswer'>,
  event: RunEvent,
): boolean {
  if (event.type === 'run.ended') return true
  if (event.type === 'input.resolved') return event.data.interactionId === endsAtAnswer
  if (event.type !== 'run.state' || event.data.to !== 'waiting_user') return false
  const parks = atDecision === 'parks' || (atDecision === 'parks_for_client' && event.data.awaitsClient === true)
  return parks && event.seq > decidedUpTo
}

const nothing: readonly Frame[] = []

export function silent<State>(state: State): Projection<State> {
  return { state, frames: nothing }
}

export function emit<State>(state: State, ...frames: Frame[]): Projection<State> {
  return { state, frames }
}

/** Runs each step on the state of the one before, and collects the frames of all. */
export function inSequence<State>(state: State, ...steps: ((state: State) => Projection<State>)[]): Projection<State> {
  const frames: Frame[] = []
  let current = state
  for (const step of steps) {
    const projection = step(current)
    current = projection.state
    frames.push(...projection.frames)
  }
  return { state: current, frames }
}

export type Encoded<State> = { readonly text: string; readonly state: State; readonly over: boolean }

/**
 * Folds `events` and returns the bytes of every frame after `cursor`, up to the event that ends the stream. An event that
 * the reader has already seen does not end the stream again.
 */
export function encodeEvents<State>(
  dialect: Dialect<State>,
  state: State,
  events: readonly StoredEvent[],
  cursor: Cursor,
): Encoded<State> {
  const [only] = events
  if (events.length === 1 && only?.type === 'text.delta' && only.seq > cursor.seq) {
    // Nearly every batch of a live stream is one token.
    const quick = dialect.encodeDelta(state, new EventDelta(only))
    if (quick !== null) return { text: quick, state, over: false }
  }
  const encoder = new EventEncoder(dialect, state, cursor)
  for (const stored of events) {
    if (stored.type === 'stored.deltas') encoder.addDeltas(stored)
    else if (stored.type === 'text.delta' && encoder.addQuickly(new EventDelta(stored))) continue
    else if (encoder.add(stored)) return { text: encoder.text, state: encoder.state, over: true }
  }
  return { text: encoder.text, state: encoder.state, over: false }
}

class EventEncoder<State> {
  text = ''
  state: State
  private readonly dialect: Dialect<State>
  private readonly cursor: Cursor

  constructor(dialect: Dialect<State>, state: State, cursor: Cursor) {
    this.dialect = dialect
    this.state = state
    this.cursor = cursor
  }

  addDeltas(deltas: StoredDeltas): void {
    const delta = new StoredDeltaView(deltas)
    for (; delta.index < deltas.length; delta.index++) if (!this.addQuickly(delta)) this.add(deltas.event(delta.index))
  }

  /** Returns false if the delta needs `add`. */
  addQuickly(delta: JsonDelta): boolean {
    const quick = this.dialect.encodeDelta(this.state, delta)
    if (quick === null) return false
    // Any cursor within this event has its only frame, also one from a variant of the dialect that has more of them.
    if (delta.seq > this.cursor.seq) this.text += quick
    return true
  }

  /** Returns true if the stream ends with this event. */
  add(event: RunEvent): boolean {
    const { dialect, cursor } = this
    const projection = dialect.step(this.state, event)
    this.state = projection.state
    if (event.seq < cursor.seq || (event.seq === cursor.seq && cursor.index === null)) return false
    const count = projection.frames.length
    for (let index = 0; index < count; index++) {
      if (hasFrame(cursor, event.seq, index)) continue
      this.text += dialect.encode(projection.frames[index] as Frame, addressOf(event.seq, index, count))
    }
    const seenToTheEnd = event.seq === cursor.seq && count > 0 && count <= (cursor.index ?? 0)
    return !seenToTheEnd && endsStream(dialect, event)
  }
}
