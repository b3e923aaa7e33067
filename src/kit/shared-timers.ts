// Many timers on one timer of the clock, for deadlines that every stream and every run has and that
// are rarely reached. A timer of the system holds several hundred bytes, and the context of the code
// that set it; one of these holds its time and what it calls.

import { withoutActivity } from './activity.ts'
import type { Clock, Timer } from './clock.ts'

/** Called when a timer fires. An object needs no function of its own for each timer. */
export interface Expiring {
  expired(): void
}

export interface Timers {
  after(delayMs: number, target: Expiring | (() => void)): Timer
}

const timersOf = new WeakMap<Clock, SharedTimers>()

/** The timers that all users of a clock share. They fire outside of any activity. */
export function sharedTimers(clock: Clock): Timers {
  let timers = timersOf.get(clock)
  if (timers === undefined) {
    timers = new SharedTimers(clock)
    timersOf.set(clock, timers)
  }
  return timers
}

class SharedTimer implements Timer {
  readonly dueAt: number
  private readonly target: Expiring | (() => void)
  private readonly timers: SharedTimers
  /** The place in the heap; -1 if it has fired or was cancelled. */
  place = -1

  constructor(dueAt: number, target: Expiring | (() => void), timers: SharedTimers) {
    this.dueAt = dueAt
    this.target = target
    this.timers = timers
  }

  cancel(): void {
    this.timers.remove(this)
  }

  fire(): void {
    if (typeof this.target === 'function') this.target()
    else this.target.expired()
  }
}

class SharedTimers implements Timers {
  private readonly clock: Clock
  /** A binary heap: the timer that is due first is the first one. */
  private readonly heap: SharedTimer[] = []
  private armed: Timer | undefined
  private armedFor = Infinity

  constructor(clock: Clock) {
    this.clock = clock
  }

  after(delayMs: number, target: Expiring | (() => void)): Timer {
    const timer = new SharedTimer(this.clock.monotonic() + Math.max(0, delayMs), target, this)
    this.put(timer, this.heap.length)
    this.rise(timer)
    if (timer.dueAt < this.armedFor) this.arm()
    return timer
  }

  /** Unless it was the last one, the timer of the clock stays as it is: at worst it fires for nothing. */
  remove(timer: SharedTimer): void {
    if (timer.place === -1) return
    const { place } = timer
    timer.place = -1
    const last = this.heap.pop()
    if (last !== undefined && last !== timer) {
      this.put(last, place)
      this.rise(last)
      this.sink(last)
    }
    if (this.heap.length === 0 && this.armed !== undefined) this.arm()
  }

  private arm(): void {
    this.armed?.cancel()
    this.armed = undefined
    const [first] = this.heap
    this.armedFor = first?.dueAt ?? Infinity
    if (first === undefined) return
    const delayMs = Math.max(0, Math.ceil(first.dueAt - this.clock.monotonic()))
    this.armed = withoutActivity(() => this.clock.after(delayMs, () => this.fireDue()))
  }

  private fireDue(): void {
    // Timers that are set or cancelled meanwhile do not arm the clock each by itself.
    this.armed = undefined
    this.armedFor = -Infinity
    try {
      const now = this.clock.monotonic()
      for (let [first] = this.heap; first !== undefined && first.dueAt <= now; [first] = this.heap) {
        this.remove(first)
        first.fire()
      }
    } finally {
      this.arm()
    }
  }

  private put(timer: SharedTimer, place: number): void {
    this.heap[place] = timer
    timer.place = place
  }

  private rise(timer: SharedTimer): void {
    while (timer.place > 0) {
      const above = (timer.place - 1) >> 1
      const parent = this.heap[above]
      if (parent === undefined || parent.dueAt <= timer.dueAt) return
      this.put(parent, timer.place)
      this.put(timer, above)
    }
  }

  private sink(timer: SharedTimer): void {
    for (;;) {
      const left = this.heap[2 * timer.place + 1]
      const right = this.heap[2 * timer.place + 2]
      const child = right !== undefined && left !== undefined && right.dueAt < left.dueAt ? right : left
      if (child === undefined || child.dueAt >= timer.dueAt) return
      const below = child.place
      this.put(child, timer.place)
      this.put(timer, below)
    }
  }
}
