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
const keptCharsMax = 256 * 1024

class RunChannel {
  readonly followers = new Set<ChannelFollower>()
  private batches: Batch[] = []

  publish(events: readonly RunEvent[]): void {
    this.prune()
    this.batches.push(batchOf(events))
    const headSeq = events.at(-1)?.seq ?? 0
    for (const follower of this.followers) follower.wake(headSeq)
  }

  after(cursor: number): Batch | undefined {
    // Nearly always the last one.
    for (let index = this.batches.length - 1; index >= 0; index--) {
      const batch = this.batches[index] as Batch
      if (batch.firstSeq <= cursor + 1) return batch.lastSeq > cursor ? batch : undefined
    }
    return undefined
  }

  private prune(): void {
    let slowest = Number.POSITIVE_INFINITY
    for (const follower of this.followers) slowest = Math.min(slowest, follower.cursor)
    let events = 0
    let chars = 0
    for (let index = this.batches.length - 1; index >= 0; index--) {
      const batch = this.batches[index] as Batch
      events += batch.events.length
      for (const event of batch.events) chars += event.type === 'text.delta' ? 64 + event.data.text.length : 512
      if (batch.lastSeq <= slowest || events > keptEventsMax || chars > keptCharsMax) {
        this.batches.splice(0, index + 1)
        return
      }
    }
  }
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
