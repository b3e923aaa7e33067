// A dialect turns journal events into the frames of one wire. It is a state
// machine with no clock, no randomness and no socket; so live, replay and resume
// are one code path, and a frame has an address: the `seq` of its event, or
// `seq.index` (from 1) where one event gives several frames.

import type { EventOf, RunEvent } from '../journal/event.ts'
import { addressOf, type Cursor, hasFrame } from './cursor.ts'

export type Frame = {
  /** The name by which the wire, timelines and tests know the frame. */
  readonly name: string
  readonly data: unknown
}

export type Projection<State> = { readonly state: State; readonly frames: readonly Frame[] }

export type RunIdentity = { readonly runId: string }

export interface Dialect<State = unknown> {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  /** The fold before the first event. */
  open(run: RunIdentity): State
  /**
   * Folds one event. States are values: a state that was returned is never changed afterwards, since
   * subscribers at the same place share it.
   */
  step(state: State, event: RunEvent): Projection<State>
  encode(frame: Frame, address: string): string
  /**
   * The bytes of a text delta, where it gives exactly one frame and leaves the state alone. The same bytes
   * as `encode` of `step`; only cheaper, since nearly all events are text deltas. Null: use `step`.
   */
  encodeDelta(state: State, event: EventOf<'text.delta'>): string | null
  /** Bytes that keep an idle connection alive; they belong to the connection and carry no id. Null: this wire has none. */
  keepAlive(nowMs: number, count: number): string | null
  readonly keepAliveTiming: KeepAliveTiming
  /**
   * What the stream does when the run parks until a person decides. `holds`: it stays open. `parks`: it ends there, and a
   * reader that comes back with the cursor of that event gets what follows. The event therefore has to have a frame.
   */
  readonly atDecision: 'holds' | 'parks'
}

/** The settings that a keep-alive interval can come from. */
export type KeepAliveInterval = 'pingMs' | 'fcmpHeartbeatMs' | 'sessionHeartbeatMs'

export type KeepAliveTiming = {
  readonly interval: KeepAliveInterval
  /** True: the time runs from the last byte that was sent, so that only an idle stream is kept alive. */
  readonly whenIdle: boolean
}

/** The timing of a wire that asks for nothing special. */
export const pingTiming: KeepAliveTiming = { interval: 'pingMs', whenIdle: false }

/** The stream is over after this event, though the run may go on. Never true of a text delta. */
export function endsStream({ atDecision }: Pick<Dialect, 'atDecision'>, event: RunEvent): boolean {
  if (event.type === 'run.ended') return true
  return atDecision === 'parks' && event.type === 'run.state' && event.data.to === 'waiting_user'
}

const nothing: readonly Frame[] = []

export function silent<State>(state: State): Projection<State> {
  return { state, frames: nothing }
}

export function emit<State>(state: State, ...frames: Frame[]): Projection<State> {
  return { state, frames }
}

export type Encoded<State> = { readonly text: string; readonly state: State; readonly over: boolean }

/**
 * Folds `events` and gives the bytes of every frame after `cursor`, up to the event that ends the stream. An event that the
 * reader has seen does not end it again.
 */
export function encodeEvents<State>(
  dialect: Dialect<State>,
  state: State,
  events: readonly RunEvent[],
  cursor: Cursor,
): Encoded<State> {
  let text = ''
  for (const event of events) {
    const seen = event.seq < cursor.seq || (event.seq === cursor.seq && cursor.index === null)
    if (event.type === 'text.delta') {
      const quick = dialect.encodeDelta(state, event)
      if (quick !== null) {
        if (!seen) text += quick
        continue
      }
    }
    const projection = dialect.step(state, event)
    state = projection.state
    if (seen) continue
    const count = projection.frames.length
    for (let index = 0; index < count; index++) {
      if (hasFrame(cursor, event.seq, index)) continue
      text += dialect.encode(projection.frames[index] as Frame, addressOf(event.seq, index, count))
    }
    const seenToTheEnd = event.seq === cursor.seq && count > 0 && count <= (cursor.index ?? 0)
    if (!seenToTheEnd && endsStream(dialect, event)) return { text, state, over: true }
  }
  return { text, state, over: false }
}
