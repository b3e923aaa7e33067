// The one way to read the stored events of a run from its first to its last: page by page.
// A long run has hundreds of pages, and reading one takes milliseconds, so the event loop
// gets a turn between two pages and the streams of other clients go on. A reader that
// stays for what comes next uses the follower (bus/follower.ts).

import type { RunEvent } from './event.ts'
import { applyEvent, newRunState, type RunState } from './run-state.ts'

export type EventPage = {
  events: RunEvent[]
  /** Stored rows in this page that no longer parse or fit; they are left out of `events`. */
  skipped: number
  /** The seq to go on after; also moves past skipped rows. */
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
    await new Promise((resolve) => setImmediate(resolve))
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
  // Unreadable rows at the very end have a number too; the next event must not get it again.
  state.lastSeq = lastSeq
  return state
}
