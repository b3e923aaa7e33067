// Places in the journal of a run that waited for a person or a client: where its stream ended,
// and where the run went on.

import { type EventReader, eventPages } from '../journal/event-pages.ts'
import type { RunEvent } from '../journal/event.ts'

/** The event at which the stream with the last of these questions ended; the question itself if the run did not park. */
export async function parkedAfter(
  journal: EventReader,
  runId: string,
  interactionIds: ReadonlySet<string>,
): Promise<number> {
  let last = { seq: 0, parked: false }
  for await (const { events } of eventPages(journal, runId)) {
    for (const event of events) {
      if (event.type === 'input.required' && interactionIds.has(event.data.interactionId))
        last = { seq: event.seq, parked: false }
      else if (last.seq > 0 && !last.parked && isParked(event)) last = { seq: event.seq, parked: true }
    }
  }
  return last.seq
}

/** The last event with which the run went on after it had waited; 0 if there is none. */
export async function lastResumedAt(journal: EventReader, runId: string): Promise<number> {
  let seq = 0
  for await (const { events } of eventPages(journal, runId)) seq = events.findLast(isResumed)?.seq ?? seq
  return seq
}

function isParked(event: RunEvent): boolean {
  return event.type === 'run.state' && event.data.to === 'waiting_user'
}

function isResumed(event: RunEvent): boolean {
  return event.type === 'run.state' && event.data.from === 'waiting_user'
}
