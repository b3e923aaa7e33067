// Reads the stored events of a run from first to last, page by page. All code that reads
// a whole journal must use it: a long run has hundreds of pages and each takes milliseconds
// to read, so the loop waits for its next turn between pages and other clients' streams
// continue. To wait for new events as well, use the follower (bus/follower.ts).

import { nextTurn } from '../kit/turns.ts'
import type { RunEvent } from './event.ts'
import type { StoredEvent } from './stored-events.ts'
import { applyEvent, newRunState, type RunState } from './run-state.ts'

export type EventPage = {
  readonly events: RunEvent[]
  /** The same events with text deltas that are not decoded, if there are any. Streams read these. */
  stored?: readonly StoredEvent[]
  /** How many stored events of this page no longer parse or fit their schema; they are left out of `events`. */
  skipped: number
  /** The `afterSeq` for the next page; it also moves past skipped events. */
  nextAfter: number
  /** Nothing was stored after `nextAfter` when this page was read. */
  atHead: boolean
}

/** The part of a store that readers of a journal need. */
export interface EventReader {
  /** Events after `afterSeq`, at most `limit` and at most about 1 MiB of them (always at least one if there is one). */
  readEvents(runId: string, afterSeq: number, limit: number): Promise<EventPage>
}

const pageEvents = 1000

export async function* eventPages(reader: EventReader, runId: string): AsyncGenerator<EventPage, void> {
  let after = 0
  for (;;) {
    const page = await reader.readEvents(runId, after, pageEvents)
    yield page
    if (page.atHead) return
    after = page.nextAfter
    await nextTurn()
  }
}

/** The state of a run after all its stored events. */
export async function readRunState(reader: EventReader, runId: string): Promise<RunState> {
  const state = newRunState()
  let lastSeq = 0
  for await (const page of eventPages(reader, runId)) {
    for (const event of page.events) applyEvent(state, event)
    lastSeq = page.nextAfter
  }
  // Unreadable events at the very end have a seq too, and the next event must not reuse it.
  state.lastSeq = lastSeq
  return state
}
