// Aborts work on a remote answer if nothing arrives for too long.

import type { AppError } from '../errors/app-error.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { type Expiring, sharedTimers } from '../kit/shared-timers.ts'
import type { RunSignal } from './run-signal.ts'

/** Also fires if nothing arrives before the first token. */
export class StallWatch implements Expiring {
  private readonly controller = new AbortController()
  private readonly clock: Clock
  private readonly stallMs: number
  private readonly outer: RunSignal
  private readonly stalled: (seconds: number) => AppError
  private timer: Timer
  private lastAliveAt: number

  constructor(clock: Clock, stallMs: number, outer: RunSignal, stalled: (seconds: number) => AppError) {
    this.clock = clock
    this.stallMs = stallMs
    this.outer = outer
    this.stalled = stalled
    outer.onAbort = this.controller
    if (outer.aborted) this.controller.abort(outer.reason)
    this.lastAliveAt = clock.monotonic()
    this.timer = sharedTimers(clock).after(stallMs, this)
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  /** Called for every batch of tokens, so it only records the time; the timer compares it when it fires. */
  alive(): void {
    this.lastAliveAt = this.clock.monotonic()
  }

  reason(): unknown {
    return this.signal.aborted ? this.signal.reason : undefined
  }

  stop(): void {
    this.timer.cancel()
    this.outer.onAbort = undefined
  }

  /** Aborts the work if nothing has arrived since the timer was set. */
  expired(): void {
    const quietMs = this.clock.monotonic() - this.lastAliveAt
    if (quietMs < this.stallMs) {
      this.timer = sharedTimers(this.clock).after(this.stallMs - quietMs, this)
      return
    }
    this.controller.abort(this.stalled(Math.round(this.stallMs / 1000)))
  }
}
