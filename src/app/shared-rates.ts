// Counts requests per caller over all nodes, in the database. All requests that come while one
// statement runs are counted by the next one. A slow or missing database must not delay requests:
// after `answerWithinMs` they are judged by the windows of this process alone.

import type { Clock, Timer } from '../kit/clock.ts'
import type { RateStore, RateWindow } from '../stores/rate-store.ts'
import { type CountedRate, type RateCounter, rateWindowMs, RateWindows } from '../http/rate-windows.ts'

/** How long a statement may take. A request may have to wait for the one that runs and for its own. */
const answerWithinMs = 50
/** Bounds the parameters of one statement. */
const keysMax = 1000
/** If more callers wait for the database, further ones are counted in this process only. */
const waitingMax = 10_000
/** Bounds the work of one removal. */
const removedAtOnce = 1000
const removalsMax = 50

type Waiter = { local: CountedRate; resolve(counted: CountedRate): void }

export class SharedRates implements RateCounter {
  private readonly store: RateStore
  private readonly clock: Clock
  private readonly onError: (error: unknown) => void
  private readonly local: RateWindows
  /** The requests of each caller that the next statement counts, in the order in which they came. */
  private waiting = new Map<string, Waiter[]>()
  private running = false
  /** The statement that runs takes too long, so no request waits for it. */
  private late = false
  private failing = false
  private closed = false
  private removal: Timer | undefined

  constructor(options: { store: RateStore; clock: Clock; onError: (error: unknown) => void }) {
    this.store = options.store
    this.clock = options.clock
    this.onError = options.onError
    this.local = new RateWindows(options.clock)
    this.removeLater()
  }

  count(key: string): CountedRate | Promise<CountedRate> {
    const local = this.local.count(key)
    const known = this.waiting.get(key)
    if (this.closed || (known === undefined && this.waiting.size >= waitingMax)) return local
    return new Promise((resolve) => {
      const waiter = { local, resolve }
      if (known === undefined) this.waiting.set(key, [waiter])
      else known.push(waiter)
      if (this.late) resolve(local)
      if (!this.running) {
        this.running = true
        // After the other requests that came with this one.
        queueMicrotask(() => void this.run())
      }
    })
  }

  close(): void {
    this.closed = true
    this.removal?.cancel()
  }

  private async run(): Promise<void> {
    while (this.waiting.size > 0) await this.addNext()
    this.running = false
  }

  private async addNext(): Promise<void> {
    const entries = [...this.waiting].slice(0, keysMax)
    for (const [key] of entries) this.waiting.delete(key)
    const batch = new Map(entries)
    const timer = this.clock.after(answerWithinMs, () => {
      this.late = true
      answerLocally(batch)
      answerLocally(this.waiting)
    })
    try {
      const hits = entries.map(([key, waiters]) => ({ key, count: waiters.length }))
      for (const window of await this.store.addHits(hits, rateWindowMs)) answer(batch, window)
      this.failing = false
    } catch (error) {
      // Once for each time that it begins to fail.
      if (!this.failing && !this.closed) this.onError(error)
      this.failing = true
    } finally {
      timer.cancel()
      this.late = false
      answerLocally(batch)
    }
  }

  private removeLater(): void {
    this.removal = this.clock.after(rateWindowMs, () => {
      void this.removeOld().finally(() => {
        if (!this.closed) this.removeLater()
      })
    })
  }

  private async removeOld(): Promise<void> {
    try {
      for (let round = 0; round < removalsMax && !this.closed; round += 1)
        if ((await this.store.removeOldWindows(removedAtOnce)) < removedAtOnce) return
    } catch {
      // The next removal comes in a minute, and requests report a database that fails.
    }
  }
}

/** The requests of one statement get the counts that they would have got one after the other. */
function answer(batch: ReadonlyMap<string, Waiter[]>, { key, current, leftMs }: RateWindow): void {
  const waiters = batch.get(key) ?? []
  for (const [index, { resolve }] of waiters.entries())
    resolve({ current: current - waiters.length + 1 + index, ttl: leftMs })
}

/** Does nothing for requests that were answered before. */
function answerLocally(batch: ReadonlyMap<string, Waiter[]>): void {
  for (const waiters of batch.values()) for (const { local, resolve } of waiters) resolve(local)
}
