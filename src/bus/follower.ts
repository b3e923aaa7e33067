// Follows one run from a cursor: catches up from the store, then goes live, with
// no gap and no repeat. A follower is a cursor and nothing else; what it has not
// taken yet waits in the journal, not in memory.
//
// Why there is no gap: `publish` comes after the commit, and the check of memory,
// the decision to wait and the registration of the waiter happen in one go of the
// event loop. Why there is no repeat: a batch that overlaps the cursor is cut.

import type { RunEvent } from '../journal/event.ts'
import type { Store } from '../stores/store.ts'
import { type Batch, batchOf, type Channel, type ChannelFollower, type LiveBus } from './live-bus.ts'

/** Events a catch-up takes at a time. */
const pageEvents = 512

export class Follower implements ChannelFollower {
  cursor: number
  private readonly runId: string
  private readonly store: Pick<Store, 'readEvents' | 'readRun'>
  private readonly channel: Channel
  private ended = false
  /** Until the store has been read to its end once, nobody knows what was committed before we joined. */
  private caughtUp = false
  /** The newest event that was announced. Memory may have dropped it again before we got to it. */
  private headSeq = 0
  private closed = false
  private waiter: (() => void) | null = null

  constructor(runId: string, after: number, store: Pick<Store, 'readEvents' | 'readRun'>, bus: LiveBus) {
    this.runId = runId
    this.cursor = after
    this.store = store
    this.channel = bus.join(runId, this)
  }

  /** The next events, or null when the run has ended (or is gone) or the follower was closed. One call at a time. */
  async next(): Promise<Batch | null> {
    for (;;) {
      if (this.closed || this.ended) return null
      const live = this.channel.after(this.cursor)
      if (live !== undefined) return this.take(live)
      if (!this.caughtUp || this.headSeq > this.cursor) {
        const page = await this.store.readEvents(this.runId, this.cursor, pageEvents)
        if (page.events.length > 0) return this.take(batchOf(page.events), page.nextAfter)
        if (page.nextAfter > this.cursor) {
          this.cursor = page.nextAfter
          continue
        }
        if (this.caughtUp) {
          // Announced, and yet not there: the run was deleted under us.
          this.ended = true
          continue
        }
        this.caughtUp = true
        const run = await this.store.readRun(this.runId)
        if (run === undefined || (run.endedAt !== null && run.lastSeq <= this.cursor)) this.ended = true
        continue
      }
      await new Promise<void>((resolve) => {
        this.waiter = resolve
      })
      this.waiter = null
    }
  }

  wake(headSeq: number): void {
    this.headSeq = headSeq
    this.waiter?.()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.channel.leave()
    this.waiter?.()
  }

  private take(batch: Batch, nextAfter = batch.lastSeq): Batch {
    const whole = batch.firstSeq > this.cursor
    const taken = whole ? batch : batchOf(batch.events.filter((event) => event.seq > this.cursor))
    this.cursor = nextAfter
    const last: RunEvent | undefined = taken.events.at(-1)
    if (last?.type === 'run.ended') this.ended = true
    return taken
  }
}
