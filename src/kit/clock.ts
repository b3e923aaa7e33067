// The clock, passed in as a dependency. No code below `app/` may read the system clock or
// set a timer directly, so that tests can advance time instead of waiting.

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Epoch milliseconds, for times that people read. It jumps, also backwards, when the system clock is set. */
  now(): number
  /**
   * Monotonic milliseconds: the epoch time at which the process started, plus the time since. Use it for differences of two
   * readings: durations, waits, budgets, leases. Do not use it for times that people read.
   */
  monotonic(): number
  /** Calls `fire` once, `delayMs` from now. Timers never keep the process alive. */
  after(delayMs: number, fire: () => void): Timer
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.timeOrigin + performance.now(),
  after(delayMs, fire) {
    // setTimeout fires after 1 ms if the delay is above 2^31-1. The delay is capped, so a longer timer fires early and its owner sets it again.
    const handle = setTimeout(fire, Math.min(Math.max(delayMs, 0), 0x7fffffff))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
}

/** Whole milliseconds since `startedAt`, which came from `monotonic`. */
export function elapsedMs(clock: Pick<Clock, 'monotonic'>, startedAt: number): number {
  return Math.max(0, Math.round(clock.monotonic() - startedAt))
}

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
