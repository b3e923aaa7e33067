// Live fan-out within a process: what was just committed, handed to whoever
// follows that run right now. It holds nothing that the journal does not hold,
// and only as much as the slowest follower near the head still needs, up to a
// bound; a follower that falls further behind reads from the store.

import type { RunEvent } from '../journal/event.ts'

/** Events that were committed together. Shared by all followers of the run, and so are the bytes made from it. */
export type Batch = {
  readonly firstSeq: number
  readonly lastSeq: number
  readonly events: readonly RunEvent[]
  /** Per dialect: what these events look like on its wire. Filled by the first follower that needs it. */
  readonly encoded: Map<string, unknown>
}

export function batchOf(events: readonly RunEvent[]): Batch {
  return { firstSeq: events[0]?.seq ?? 0, lastSeq: events.at(-1)?.seq ?? 0, events, encoded: new Map() }
}

export interface LiveBus {
  /** After the commit, in order of seq. */
  publish(runId: string, events: readonly RunEvent[]): void
  join(runId: string, follower: ChannelFollower): Channel
}

export interface ChannelFollower {
  /** Everything up to here was taken. */
  readonly cursor: number
  /** Something up to `headSeq` was committed. */
  wake(headSeq: number): void
}

export interface Channel {
  /** The batch that holds the event after `cursor`, where it is still in memory. */
  after(cursor: number): Batch | undefined
  leave(): void
}

/** What a run keeps in memory for followers that are a little behind. */
const keptEventsMax = 256
/** In UTF-16 units. A batch that alone is larger is not kept at all: followers read it from the store. */
const keptCharsMax = 256 * 1024

/** What an event holds besides its text: ids, names, the object itself. */
const eventOverhead = 64

type KeptBatch = { readonly batch: Batch; readonly chars: number }

class RunChannel {
  readonly followers = new Set<ChannelFollower>()
  private kept: KeptBatch[] = []

  publish(events: readonly RunEvent[]): void {
    let chars = 0
    for (const event of events) chars += sizeOf(event)
    this.prune(chars)
    if (chars <= keptCharsMax) this.kept.push({ batch: batchOf(events), chars })
    const headSeq = events.at(-1)?.seq ?? 0
    for (const follower of this.followers) follower.wake(headSeq)
  }

  after(cursor: number): Batch | undefined {
    // Nearly always the last one.
    for (let index = this.kept.length - 1; index >= 0; index--) {
      const { batch } = this.kept[index] as KeptBatch
      if (batch.firstSeq <= cursor + 1) return batch.lastSeq > cursor ? batch : undefined
    }
    return undefined
  }

  /** Makes room for a batch of `chars`. */
  private prune(chars: number): void {
    let slowest = Number.POSITIVE_INFINITY
    for (const follower of this.followers) slowest = Math.min(slowest, follower.cursor)
    let events = 0
    let total = chars
    for (let index = this.kept.length - 1; index >= 0; index--) {
      const { batch, chars: batchChars } = this.kept[index] as KeptBatch
      events += batch.events.length
      total += batchChars
      if (batch.lastSeq <= slowest || events > keptEventsMax || total > keptCharsMax) {
        this.kept.splice(0, index + 1)
        return
      }
    }
  }
}

/** Roughly how much memory an event holds, in UTF-16 units: the length of all its strings. Deltas are nearly all events. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'text.delta') return eventOverhead + event.data.text.length
  let chars = 0
  const rest: unknown[] = [event.data]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'string') chars += value.length
    else if (typeof value === 'object' && value !== null) {
      chars += eventOverhead
      for (const [key, inner] of Object.entries(value)) {
        chars += key.length
        rest.push(inner)
      }
    }
  }
  return chars
}

export function createProcessBus(): LiveBus {
  const channels = new Map<string, RunChannel>()
  return {
    publish(runId, events) {
      // Without followers nothing is kept: whoever comes reads the store first.
      if (events.length > 0) channels.get(runId)?.publish(events)
    },
    join(runId, follower) {
      let channel = channels.get(runId)
      if (channel === undefined) {
        channel = new RunChannel()
        channels.set(runId, channel)
      }
      const joined = channel
      joined.followers.add(follower)
      return {
        after: (cursor) => joined.after(cursor),
        leave() {
          joined.followers.delete(follower)
          if (joined.followers.size === 0 && channels.get(runId) === joined) channels.delete(runId)
        },
      }
    },
  }
}
