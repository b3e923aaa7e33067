// The journal itself as a stream: one frame for each event, and in it the frames that other wires make of this event, as they
// are sent. So one connection shows a run in many dialects, aligned by `seq`.

import { isoTime } from '../../kit/clock.ts'
import type { RunEvent } from '../../journal/event.ts'
import { EventDelta } from '../../journal/stored-events.ts'
import { addressOf } from '../cursor.ts'
import { type Dialect, emit, endsStream, pingTiming } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { type ShownEvent, shownEvent } from './shown-event.ts'

/** By the name of the wire. */
type WireStates = Readonly<Record<string, unknown>>

export type JournalFrame = ShownEvent & {
  /** The bytes that each wire sends for this event; a wire that sends none is absent. */
  wires: Record<string, string[]>
  /** The wires whose streams end here. */
  ends: string[]
}

/** `wires` by the name that the caller has given. */
export function journalWire(wires: Readonly<Record<string, Dialect>>): Dialect<WireStates> {
  const all = Object.entries(wires)
  return {
    name: 'journal',
    bytesKey: Object.keys(wires).join(' '),
    headers: sseHeaders,

    open: (run) => Object.fromEntries(all.map(([name, dialect]) => [name, dialect.open(run)])),

    step(states, event) {
      const next: Record<string, unknown> = {}
      const sent: Record<string, string[]> = {}
      for (const [name, dialect] of all) {
        const { state, frames } = framesOfEvent(dialect, states[name], event)
        next[name] = state
        if (frames.length > 0) sent[name] = frames
      }
      const ends = all.filter(([, dialect]) => endsStream(dialect, event)).map(([name]) => name)
      const data: JournalFrame = { ...shownEvent(event), wires: sent, ends }
      return emit(next, { name: event.type, data })
    },

    encode: ({ data }, address) => sseFrame(address, null, JSON.stringify(data)),
    // The fast paths of the wires are used within `step`.
    encodeDelta: () => null,
    keepAlive: (nowMs) => sseFrame(null, null, JSON.stringify({ type: 'ping', at: isoTime(nowMs) })),
    keepAliveTiming: pingTiming,
    atDecision: 'holds',
  }
}

function framesOfEvent(dialect: Dialect, state: unknown, event: RunEvent): { state: unknown; frames: string[] } {
  const quick = event.type === 'text.delta' ? dialect.encodeDelta(state, new EventDelta(event)) : null
  if (quick !== null) return { state, frames: [quick] }
  const projection = dialect.step(state, event)
  const { length } = projection.frames
  const frames = projection.frames.map((frame, index) => dialect.encode(frame, addressOf(event.seq, index, length)))
  return { state: projection.state, frames }
}
