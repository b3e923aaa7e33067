// The store of the rate limiter. It uses the monotonic clock: if the system clock is set
// back, a caller must not stay refused until the clock has caught up.

import type { Clock } from '../kit/clock.ts'

/** If there are more callers than this, the one with the oldest last request is removed. */
const callersMax = 10_000

type Window = { since: number; current: number }
type Counted = (error: Error | null, window?: { current: number; ttl: number }) => void

/** Returns a store class, because the rate-limit plugin creates the instance itself. */
export function rateWindows(clock: Pick<Clock, 'monotonic'>) {
  const windows = new Map<string, Window>()
  return class RateWindows {
    incr(key: string, counted: Counted, timeWindow: number): void {
      const now = clock.monotonic()
      const known = windows.get(key)
      const window = known === undefined || now >= known.since + timeWindow ? { since: now, current: 0 } : known
      window.current += 1
      windows.delete(key)
      windows.set(key, window)
      const [quietest] = windows.keys()
      if (windows.size > callersMax && quietest !== undefined) windows.delete(quietest)
      counted(null, { current: window.current, ttl: window.since + timeWindow - now })
    }

    /** All routes share one store: a caller has one limit for all of them. */
    child(): this {
      return this
    }
  }
}
