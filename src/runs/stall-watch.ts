// Aborts work on a remote answer if nothing arrives for too long.

import type { AppError } from '../errors/app-error.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { sharedTimers } from '../kit/shared-timers.ts'

/** Also fires if nothing arrives before the first token. */
export class StallWatch {
  readonly signal: AbortSignal
  private readonly controller = new AbortController()
  private readonly clock: Clock
  private readonly stallMs: number
  private readonly outer: AbortSignal
  private readonly stalled: (seconds: number) => AppError
  private readonly onOuterAbort: () => void
  private timer: Timer
  private lastAliveAt: number

  constructor(clock: Clock, stallMs: number, outer: AbortSignal, stalled: (seconds: number) => AppError) {
    this.clock = clock
    this.stallMs = stallMs
    this.outer = outer
    this.stalled = stalled
    this.signal = this.controller.signal
    this.onOuterAbort = () => this.controller.abort(outer.reason)
    outer.addEventListener('abort', this.onOuterAbort, { once: true })
    if (outer.aborted) this.onOuterAbort()
    this.lastAliveAt = clock.monotonic()
    this.timer = sharedTimers(clock).after(stallMs, () => this.check())
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
    this.outer.removeEventListener('abort', this.onOuterAbort)
  }

  private check(): void {
    const quietMs = this.clock.monotonic() - this.lastAliveAt
    if (quietMs < this.stallMs) {
      this.timer = sharedTimers(this.clock).after(this.stallMs - quietMs, () => this.check())
      return
    }
    this.controller.abort(this.stalled(Math.round(this.stallMs / 1000)))
  }
}
