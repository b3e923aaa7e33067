// Timers for the client under test: waits between attempts are over at once and are recorded, and the watchdog of silent
// connections fires only when the test says so.

import type { ClientOptions } from '../../client/src/index.ts'

export type ClientTimers = Required<Pick<ClientOptions, 'after' | 'idleTimeoutMs' | 'random'>> & {
  /** The waits before attempts, in milliseconds. */
  readonly waits: number[]
  /** Fires the watchdogs that are set. */
  silence(): void
}

export function clientTimers(): ClientTimers {
  const idleTimeoutMs = 45_000
  const watchdogs = new Set<() => void>()
  const waits: number[] = []
  return {
    idleTimeoutMs,
    waits,
    // With 1, a wait is the longest that the jitter allows.
    random: () => 1,
    after(delayMs, fire) {
      if (delayMs === idleTimeoutMs) {
        watchdogs.add(fire)
        return () => watchdogs.delete(fire)
      }
      waits.push(delayMs)
      const soon = setImmediate(fire)
      return () => clearImmediate(soon)
    },
    silence() {
      for (const fire of Array.from(watchdogs)) fire()
    },
  }
}
