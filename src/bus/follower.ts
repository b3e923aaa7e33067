// Follows one run from a cursor: catches up from the store, then goes live, with
// no gap and no repeat. A follower is a cursor and nothing else; what it has not
// taken yet waits in the journal, not in memory.
//
// Why there is no gap: `publish` comes after the commit, and the check of memory,
// the decision to wait and the registration of the waiter happen in one go of the
// event loop. Why there is no repeat: a batch that overlaps the cursor is cut.

import type { RunEvent } from '../journal/event.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { type Batch, batchOf, type Channel, type ChannelFollower, type LiveBus } from './live-bus.ts'

/** Events a catch-up takes at a time. */
const pageEvents = 512

/** How long to wait for an event that was announced and cannot be read yet; doubled up to the second. */
const rereadMs = 10
const rereadMaxMs = 1000

export type FollowedStore = Pick<RunStore, 'readEvents' | 'readRun'>

export class Follower implements ChannelFollower {
  cursor: number
  private readonly runId: string
  private readonly store: FollowedStore
  private readonly clock: Clock
  private readonly channel: Channel
  private ended = false
  /** Until the store has been read to its end once, nobody knows what was committed before we joined. */
  private caughtUp = false
  /** The newest event that was announced. Memory may have dropped it again before we got to it. */
  private headSeq = 0
  private closed = false
  private waiter: (() => void) | null = null
  private retryMs = rereadMs

  constructor(runId: string, after: number, store: FollowedStore, bus: LiveBus, clock: Clock) {
    this.runId = runId
    this.cursor = after
    this.store = store
    this.clock = clock
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
        const announced = this.caughtUp
        this.caughtUp = true
        const run = await this.store.readRun(this.runId)
        if (run === undefined || (run.endedAt !== null && run.lastSeq <= this.cursor)) this.ended = true
        else if (announced) await this.woken(this.retryMs)
        continue
      }
      await this.woken()
    }
  }

  /** Resolves when something was announced or the follower was closed; with `atMostMs`, also after that time. */
  private async woken(atMostMs?: number): Promise<void> {
    if (this.closed) return
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.waiter = resolve
      if (atMostMs === undefined) return
      timer = this.clock.after(atMostMs, resolve)
      this.retryMs = Math.min(atMostMs * 2, rereadMaxMs)
    })
    timer?.cancel()
    this.waiter = null
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
    this.retryMs = rereadMs
    const last: RunEvent | undefined = taken.events.at(-1)
    if (last?.type === 'run.ended') this.ended = true
    return taken
  }
}
