// The windows of the rate limit, measured by the monotonic clock: a system clock that is
// set back must not keep a caller refused until it has caught up.

import type { Clock } from '../kit/clock.ts'

/** More callers than this within a minute: the ones that were quiet longest are forgotten first. */
const callersMax = 10_000

type Window = { since: number; current: number }
type Counted = (error: Error | null, window?: { current: number; ttl: number }) => void

/** The kind of class that the rate-limit plugin makes its store from. */
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

    /** Routes share the windows: the limit is one for each caller. */
    child(): this {
      return this
    }
  }
}
