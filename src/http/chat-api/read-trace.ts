// Reads a run's journal, page by page, into its trace, and keeps a bounded part of the
// trace's events. Everything else in a trace (status, times, totals) is of the whole run.

import { addToTrace, openTrace, type Trace, type TraceEvent } from '../../dialects/chunks/trace.ts'
import { visibleEvents } from '../../dialects/undecided-arm.ts'
import { type EventReader, eventPages } from '../../journal/event-pages.ts'
import { PageWindow } from '../page-window.ts'

/** As many as entries of a timeline. */
const traceEventsMax = 10_000

export type TraceReading = {
  /** The run is an arm of a comparison that waits for its vote. */
  undecided?: boolean
  /** Events after this number, counted from 1. */
  after?: number
  charsMax?: number
  /** Which events count at all. */
  shows?: (event: TraceEvent) => boolean
}

/** `more`: the trace has events after `last`, the number of the last one that is in it. */
export type TracePage = { trace: Trace; more: boolean; last: number; chars: number }

/** Rows that can no longer be read are left out and never break the trace. */
export async function readTrace(
  journal: EventReader,
  runId: string,
  { undecided = false, after = 0, charsMax, shows = () => true }: TraceReading = {},
): Promise<TracePage> {
  const fold = openTrace(runId)
  const shown = new PageWindow<TraceEvent>({
    after,
    limit: traceEventsMax,
    ...(charsMax === undefined ? {} : { charsMax }),
  })
  for await (const page of eventPages(journal, runId)) {
    for (const event of visibleEvents(page.events, undecided)) addToTrace(fold, event)
    // What the window does not want is not kept by the fold either.
    for (const event of fold.trace.events.splice(0)) if (shows(event)) shown.add(event)
  }
  const trace = { ...fold.trace, events: shown.items, ...(undecided ? { total_duration_ms: null } : {}) }
  return { trace, more: shown.more, last: shown.last, chars: shown.chars }
}
