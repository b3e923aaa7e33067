// Time, handed in. Nothing below `app/` reads the system clock or sets a timer
// by itself, so that tests can move time instead of waiting for it.

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Epoch milliseconds, for times that people read. Steps when somebody sets the system clock, also backwards. */
  now(): number
  /**
   * Milliseconds that never step: the epoch time at which the process started, plus the time since. For everything that is
   * a difference of two readings: durations, waits, budgets, leases. Not for times that are stored for people.
   */
  monotonic(): number
  /** Calls `fire` once, `delayMs` from now. Timers never keep the process alive. */
  after(delayMs: number, fire: () => void): Timer
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.timeOrigin + performance.now(),
  after(delayMs, fire) {
    // setTimeout wraps to 1 ms above 2^31-1; a longer wait is simply re-armed by its owner.
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
