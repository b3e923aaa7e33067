// A clock for tests: time stands still until `advance` moves it. Due timers fire in order, each
// at its own time, and the promises and timers that they start run before time goes on. So an
// hour of waiting is one line, and no test depends on the speed of the machine. `set` moves only
// the time of day, as a person or a time server does; timers and the monotonic clock ignore it.

import type { Clock, Timer } from '../../src/kit/clock.ts'

export interface ManualClock extends Clock {
  /** Moves time on by `ms`. Resolves when everything that became due has fired and had its turn. */
  advance(ms: number): Promise<void>
  /** Sets the time of day forward, or back with a negative `byMs`. No time passes. */
  set(byMs: number): void
  /** Time stands still until this resolves as well. For work that takes more than a turn, such as that of a remote database. */
  waitFor(settled: () => Promise<void>): void
  /** How many timers are armed. */
  readonly pending: number
}

type Armed = { at: number; order: number; fire: () => void }

export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  /** The monotonic time; the time of day is this plus `offset`. */
  let now = start
  let offset = 0
  let order = 0
  const armed = new Set<Armed>()
  const waits: (() => Promise<void>)[] = []

  /** All microtasks, one round of the event loop, and the work that was named by `waitFor`. */
  async function turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    for (const settled of waits) await settled()
  }

  function nextDue(until: number): Armed | undefined {
    let next: Armed | undefined
    for (const timer of armed) {
      if (timer.at > until) continue
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer
    }
    return next
  }

  return {
    now: () => now + offset,
    monotonic: () => now,
    set(byMs) {
      offset += byMs
    },
    after(delayMs, fire): Timer {
      // Never in the same turn, like the real one: at the earliest with the next advance.
      const timer: Armed = { at: now + Math.max(delayMs, 0), order: order++, fire }
      armed.add(timer)
      return { cancel: () => void armed.delete(timer) }
    },
    waitFor(settled) {
      waits.push(settled)
    },
    get pending() {
      return armed.size
    },
    async advance(ms) {
      const until = now + ms
      // Code that was just called may still be on its way to arming its timer.
      await turn()
      for (let due = nextDue(until); due !== undefined; due = nextDue(until)) {
        armed.delete(due)
        now = Math.max(now, due.at)
        due.fire()
        await turn()
      }
      now = Math.max(now, until)
    },
  }
}
