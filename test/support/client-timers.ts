// Timers for the client under test: waits between attempts are over at once and are recorded, and time passes for the
// watchdog of silent connections only when the test says so.

import type { ClientOptions } from '../../client/src/index.ts'

export type ClientTimers = Required<Pick<ClientOptions, 'after' | 'now' | 'idleTimeoutMs' | 'random'>> & {
  /** The waits before attempts, in milliseconds. */
  readonly waits: number[]
  /** Lets the machine sleep for this long: the time of day jumps, and the watchdogs look at it. */
  sleep(forMs: number): void
}

/** How often the client looks at silent connections. No wait between attempts has this length in the tests. */
const watchSliceMs = 5000

export function clientTimers(): ClientTimers {
  const watchdogs = new Set<() => void>()
  const waits: number[] = []
  let now = 0
  return {
    idleTimeoutMs: 45_000,
    waits,
    now: () => now,
    // With 1, a wait is the longest that the jitter allows.
    random: () => 1,
    after(delayMs, fire) {
      if (delayMs === watchSliceMs) {
        const watchdog = () => {
          watchdogs.delete(watchdog)
          fire()
        }
        watchdogs.add(watchdog)
        return () => watchdogs.delete(watchdog)
      }
      waits.push(delayMs)
      const soon = setImmediate(fire)
      return () => clearImmediate(soon)
    },
    sleep(forMs) {
      now += forMs
      for (const fire of Array.from(watchdogs)) fire()
    },
  }
}
