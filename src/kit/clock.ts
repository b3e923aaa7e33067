// Time, handed in. Nothing below `app/` reads the system clock or sets a timer
// by itself, so that tests can move time instead of waiting for it.

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /** Calls `fire` once, `delayMs` from now. Timers never keep the process alive. */
  after(delayMs: number, fire: () => void): Timer
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, fire) {
    // setTimeout wraps to 1 ms above 2^31-1; a longer wait is simply re-armed by its owner.
    const handle = setTimeout(fire, Math.min(Math.max(delayMs, 0), 0x7fffffff))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
}

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
