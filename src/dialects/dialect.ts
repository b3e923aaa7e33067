// A dialect turns journal events into the frames of one wire. It is a state
// machine with no clock, no randomness and no socket; so live, replay and resume
// are one code path, and a frame has an address: the `seq` of its event, or
// `seq.index` (from 1) where one event gives several frames.

import { AppError } from '../errors/app-error.ts'
import type { EventOf, RunEvent } from '../journal/event.ts'

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
  /**
   * The stream is over after this event, though the run may go on: a wire that is parked ends where a person is needed. A
   * reader that comes back with the cursor of that event gets what follows. Never true of a text delta.
   */
  endsAfter(event: RunEvent): boolean
}

const nothing: readonly Frame[] = []

export function silent<State>(state: State): Projection<State> {
  return { state, frames: nothing }
}

export function emit<State>(state: State, ...frames: Frame[]): Projection<State> {
  return { state, frames }
}

/** Where a reader stands: everything up to here was seen. `index` is null for "the whole event". */
export type Cursor = { readonly seq: number; readonly index: number | null }

export const beginning: Cursor = { seq: 0, index: null }

export function addressOf(seq: number, index: number, count: number): string {
  return count === 1 ? String(seq) : `${seq}.${index + 1}`
}

/** `12` or `12.2`; anything else is `unknown_cursor`. */
export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,15})(?:\.([1-9]\d{0,5}))?$/.exec(text.trim())
  if (match === null) {
    throw new AppError(
      'unknown_cursor',
      `The cursor ${JSON.stringify(text.slice(0, 60))} cannot be read: send the id of the last frame you got, or 0.`,
    )
  }
  return { seq: Number(match[1]), index: match[2] === undefined ? null : Number(match[2]) }
}

export function compareCursors(left: Cursor, right: Cursor): number {
  if (left.seq !== right.seq) return left.seq - right.seq
  return (left.index ?? Number.POSITIVE_INFINITY) - (right.index ?? Number.POSITIVE_INFINITY) || 0
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
      if (event.seq === cursor.seq && index < (cursor.index ?? 0)) continue
      text += dialect.encode(projection.frames[index] as Frame, addressOf(event.seq, index, count))
    }
    const seenToTheEnd = event.seq === cursor.seq && count > 0 && count <= (cursor.index ?? 0)
    if (!seenToTheEnd && dialect.endsAfter(event)) return { text, state, over: true }
  }
  return { text, state, over: false }
}
