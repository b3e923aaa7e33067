// Counts requests per caller in windows of a minute, in this process. It uses the monotonic
// clock: if the system clock is set back, a caller must not stay refused until the clock has
// caught up.

import type { Clock } from '../kit/clock.ts'

/** The window of every limit: they are limits for a minute. */
export const rateWindowMs = 60_000

/** If there are more callers than this, the one with the oldest last request is removed. */
const callersMax = 10_000

/** `current`: the requests in the window, with this one. `ttl`: how many milliseconds it lasts. */
export type CountedRate = { current: number; ttl: number }

/** Counts one more for a key. */
export interface RateCounter {
  count(key: string): CountedRate | Promise<CountedRate>
}

export class RateWindows implements RateCounter {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly windows = new Map<string, { since: number; current: number }>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  count(key: string): CountedRate {
    const { windows } = this
    const now = this.clock.monotonic()
    const known = windows.get(key)
    const window = known === undefined || now >= known.since + rateWindowMs ? { since: now, current: 0 } : known
    window.current += 1
    windows.delete(key)
    windows.set(key, window)
    const [quietest] = windows.keys()
    if (windows.size > callersMax && quietest !== undefined) windows.delete(quietest)
    return { current: window.current, ttl: window.since + rateWindowMs - now }
  }
}

type Counted = (error: Error | null, window?: CountedRate) => void

/** Returns a store class, because the rate-limit plugin creates the instance itself. */
export function rateLimitStore(counter: RateCounter) {
  return class RateLimitStore {
    incr(key: string, counted: Counted): void {
      const result = counter.count(key)
      if (!(result instanceof Promise)) counted(null, result)
      else
        void result.then(
          (window) => counted(null, window),
          (error: Error) => counted(error),
        )
    }

    /** All routes share one store: a caller has one limit for all of them. */
    child(): this {
      return this
    }
  }
}
