// Follows one run from a cursor: catches up from the store, then reads live batches,
// without gaps or repeats. A follower buffers no events: it keeps only its cursor, and a
// slow follower reads the events it missed from the store.
//
// There is no gap, because `publish` comes after the commit, and because the follower checks
// the channel and registers its waiter in the same turn of the event loop. There is no
// repeat, because a batch that overlaps the cursor is cut.

import { AppError } from '../errors/app-error.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { nextTurn } from '../kit/turns.ts'
import { type EventBatch, eventBatch, pageBatch, type Channel, type ChannelFollower, type LiveBus } from './live-bus.ts'

/** Events per page while catching up from the store: a few milliseconds of work, and one write to the socket. */
const pageEvents = 2048

/** Delay before reading again an event that was announced but cannot be read yet. Doubles up to `rereadMaxMs`. */
const rereadMs = 10
const rereadMaxMs = 1000
/** How many reads in a row may find the store away, about half a minute: a database that is restarted must not cut streams. */
const failuresMax = 35

export type FollowedStore = Pick<RunStore, 'readEvents' | 'readRun'>

export interface BatchReceiver {
  /** Returns false if it takes no more for now. */
  receive(batch: EventBatch): boolean
}

type LiveReading = { receiver: BatchReceiver; resolve(): void; reject(error: unknown): void }

export class Follower implements ChannelFollower {
  cursor: number
  private readonly runId: string
  private readonly store: FollowedStore
  private readonly clock: Clock
  private readonly channel: Channel
  private ended = false
  /**
   * False until the store was read to its end, or the channel gave the next events: before, events may have been committed that
   * this follower knows nothing of.
   */
  private caughtUp = false
  /** The seq of the newest announced event. The channel may have dropped it from memory before this follower reads it. */
  private headSeq = 0
  private closed = false
  /** True after a page of a long replay: other requests have a turn of the event loop before the next one. */
  private owesTurn = false
  private waiter: (() => void) | null = null
  /** Set while batches are handed over as they are published. */
  private live: LiveReading | undefined
  private retryMs = rereadMs
  /** How many reads in a row failed. */
  private failures = 0

  constructor(runId: string, after: number, store: FollowedStore, bus: LiveBus, clock: Clock) {
    this.runId = runId
    this.cursor = after
    this.store = store
    this.clock = clock
    this.channel = bus.join(runId, this)
  }

  /** The next events, or null if the run has ended or was removed, or the follower was closed. Do not call it concurrently. */
  async next(): Promise<EventBatch | null> {
    for (;;) {
      const batch = await this.nextNow()
      if (batch !== undefined) return batch
      // Events may have come before this line was reached.
      if (this.isAtHead()) await this.woken()
    }
  }

  /** Like `next`, but undefined at once if everything has been read, so that nothing of the reading is held by a wait. */
  nextNow(): Promise<EventBatch | null | undefined> {
    const batch = this.batchAtHand()
    if (batch !== undefined) return Promise.resolve(batch)
    return this.isAtHead() ? Promise.resolve(undefined) : this.readOn()
  }

  private isAtHead(): boolean {
    return this.caughtUp && this.headSeq <= this.cursor
  }

  /**
   * Hands over every batch as it is published, in the call of `publish`, so that all readers of a run are served in one pass
   * without a promise for each. Resolves when `next` has to be called: `receive` returned false, the run has ended, the
   * follower was closed, or the next events are not in memory. Rejects if `receive` throws. Never call it and `next` concurrently.
   */
  receiveLive(receiver: BatchReceiver): Promise<void> {
    return new Promise((resolve, reject) => {
      this.live = { receiver, resolve, reject }
      this.receiveAtHand(this.live)
    })
  }

  takeNow(batch: EventBatch): boolean {
    const { live } = this
    if (live === undefined || batch.firstSeq !== this.cursor + 1) return false
    try {
      if (live.receiver.receive(this.take(batch)) && !this.ended) return true
      live.resolve()
    } catch (error) {
      // The caller is the writer of the run, and a reader must not hurt it.
      live.reject(error)
    }
    this.live = undefined
    return true
  }

  private receiveAtHand({ receiver, resolve, reject }: LiveReading): void {
    try {
      for (;;) {
        const batch = this.batchAtHand()
        if (batch === undefined && this.isAtHead()) return
        if (batch === undefined || batch === null || !receiver.receive(batch)) break
      }
      resolve()
    } catch (error) {
      // The caller is the writer of the run, and a reader must not hurt it.
      reject(error)
    }
    this.live = undefined
  }

  /** The next events if they are in memory, null at the end. */
  private batchAtHand(): EventBatch | null | undefined {
    if (this.closed || this.ended) return null
    const live = this.channel.after(this.cursor)
    if (live === undefined) return undefined
    this.caughtUp = true
    return this.take(live)
  }

  private async readOn(): Promise<EventBatch | null | undefined> {
    for (;;) {
      try {
        const batch = await this.readNow()
        this.failures = 0
        return batch
      } catch (error) {
        this.failures += 1
        if (!isAway(error) || this.failures > failuresMax) throw error
        await this.woken(this.retryMs)
      }
    }
  }

  private async readNow(): Promise<EventBatch | null | undefined> {
    for (;;) {
      const batch = this.batchAtHand()
      if (batch !== undefined) return batch
      if (this.isAtHead()) return undefined
      // An embedded store answers at once, and a fast reader takes the bytes at once, so nothing else makes a long replay pause.
      if (this.owesTurn) {
        this.owesTurn = false
        await nextTurn()
        continue
      }
      const page = await this.store.readEvents(this.runId, this.cursor, pageEvents)
      if ((page.stored ?? page.events).length > 0) {
        this.owesTurn = !page.atHead
        return this.take(pageBatch(page), page.nextAfter)
      }
      if (page.nextAfter > this.cursor) {
        this.cursor = page.nextAfter
        continue
      }
      const announced = this.caughtUp
      this.caughtUp = true
      const run = await this.store.readRun(this.runId)
      if (run === undefined || (run.endedAt !== null && run.lastSeq <= this.cursor)) this.ended = true
      else if (announced) await this.woken(this.retryMs)
    }
  }

  /** Resolves when an event is announced, when the follower is closed, or after `atMostMs` if given. */
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
    if (headSeq > this.headSeq) this.headSeq = headSeq
    this.notify()
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.channel.leave()
    this.notify()
  }

  private notify(): void {
    this.waiter?.()
    if (this.live !== undefined) this.receiveAtHand(this.live)
  }

  private take(batch: EventBatch, nextAfter = batch.lastSeq): EventBatch {
    const whole = batch.firstSeq > this.cursor
    const taken = whole ? batch : eventBatch(batch.events.filter((event) => event.seq > this.cursor))
    this.cursor = nextAfter
    this.retryMs = rereadMs
    if (taken.stored.at(-1)?.type === 'run.ended') this.ended = true
    return taken
  }
}

/** The store does not answer now, but may do so again. */
function isAway(error: unknown): boolean {
  return error instanceof AppError && error.kind === 'unavailable' && error.retryable
}
