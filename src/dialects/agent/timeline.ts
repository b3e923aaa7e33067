// The timeline of a run: the agent dialect's fold, one entry per frame. An event without a
// frame in that dialect appears under its own name, except `engine.handle`, which no reader sees.
// The provider state of `step.done` is left out for the same reason.

import { isoTime } from '../../kit/clock.ts'
import type { RunEvent } from '../../journal/event.ts'
import { addressOf } from '../cursor.ts'
import { agentDialect, type AgentState } from './agent.ts'

export type TimelineEntry = {
  /** 1, 2, 3… over the entries of the run. */
  seq: number
  /** The frame's address in the journal; `Last-Event-ID` understands it. */
  id: string
  event: string
  at: string
  atMs: number
  payload: unknown
}

export type TimelineFold = { state: AgentState; entries: number }

export function openTimeline(runId: string): TimelineFold {
  return { state: agentDialect.open({ runId }), entries: 0 }
}

/** Adds the entries of one event to `out`. */
export function timelineEntries(fold: TimelineFold, event: RunEvent, out: TimelineEntry[]): void {
  if (event.type === 'engine.handle') return
  const { state, frames } = agentDialect.step(fold.state, event)
  fold.state = state
  const at = isoTime(event.at)
  if (frames.length === 0) {
    fold.entries += 1
    out.push({
      seq: fold.entries,
      id: String(event.seq),
      event: event.type,
      at,
      atMs: event.at,
      payload: shownData(event),
    })
    return
  }
  for (const [index, frame] of frames.entries()) {
    fold.entries += 1
    out.push({
      seq: fold.entries,
      id: addressOf(event.seq, index, frames.length),
      event: frame.name,
      at,
      atMs: event.at,
      payload: frame.data,
    })
  }
}

function shownData(event: RunEvent): unknown {
  if (event.type !== 'step.done' || event.data.provider === undefined) return event.data
  const { provider: _provider, ...shown } = event.data
  return shown
}
