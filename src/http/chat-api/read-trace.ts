// Reads a run's journal, page by page, into its trace. Only a bounded part of the trace's
// events is kept; the other fields (status, times, totals) cover the whole run.

import { addToTrace, openTrace, type Trace, type TraceEvent } from '../../dialects/chunks/trace.ts'
import { visibleEvents } from '../../dialects/undecided-arm.ts'
import { type EventReader, eventPages } from '../../journal/event-pages.ts'
import { PageWindow } from '../page-window.ts'

/** The same limit as for the entries of a timeline. */
const traceEventsMax = 10_000

export type TraceReading = {
  /** The run is an arm of a comparison that waits for its vote. */
  undecided?: boolean
  /** Keep only events after this number; the first event has the number 1. */
  after?: number
  charsMax?: number
  /** Events for which it returns false are neither counted nor kept. */
  shows?: (event: TraceEvent) => boolean
}

/** `last` is the number of the last event in the page; `more` says whether the trace has events after it. */
export type TracePage = { trace: Trace; more: boolean; last: number; chars: number }

/** Stored rows that can no longer be read are left out. */
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
    // Empty the fold's list after each page, so that memory holds only the events in the window.
    for (const event of fold.trace.events.splice(0)) if (shows(event)) shown.add(event)
  }
  const trace = { ...fold.trace, events: shown.items, ...(undecided ? { total_duration_ms: null } : {}) }
  return { trace, more: shown.more, last: shown.last, chars: shown.chars }
}
