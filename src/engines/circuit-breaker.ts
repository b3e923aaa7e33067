// A circuit breaker for a remote engine. While the gateway is down, a run must not wait for
// its connect timeout: after a few failures in a row the engine is refused at once, and one
// trial is let through when the pause is over. Each failed trial doubles the pause.

import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import type { EngineState, TurnEngine } from './engine.ts'

/** Consecutive failures after which the breaker opens. */
const failuresMax = 3
const firstPauseMs = 10_000
const pauseMaxMs = 300_000

export class CircuitBreaker {
  private readonly clock: Pick<Clock, 'monotonic'>
  private failures = 0
  private pauseMs = firstPauseMs
  private openUntil: number | undefined
  private trying = false

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  get state(): EngineState {
    if (this.openUntil === undefined) return 'available'
    return this.clock.monotonic() < this.openUntil ? 'paused' : 'trial'
  }

  /** Whether a request may be made now. A `true` must be followed by `succeeded`, `failed` or `abandoned`. */
  admit(): boolean {
    const { state } = this
    if (state === 'available') return true
    if (state === 'paused' || this.trying) return false
    this.trying = true
    return true
  }

  succeeded(): void {
    this.failures = 0
    this.pauseMs = firstPauseMs
    this.openUntil = undefined
    this.trying = false
  }

  failed(): void {
    this.failures += 1
    const failedTrial = this.trying
    this.trying = false
    if (failedTrial) this.pauseMs = Math.min(this.pauseMs * 2, pauseMaxMs)
    else if (this.failures < failuresMax) return
    this.openUntil = this.clock.monotonic() + this.pauseMs
  }

  /** The request ended without a verdict on the gateway, for example because the run was cancelled. */
  abandoned(): void {
    this.trying = false
  }
}

/** Refuses turns with `engine_unavailable` while the breaker is open. Only `engine_unavailable` counts as a failure. */
export function withBreaker(engine: TurnEngine, breaker: CircuitBreaker): TurnEngine {
  return {
    kind: 'turn',
    name: engine.name,
    canEditInput: engine.canEditInput,
    abort: (handle, signal) => engine.abort(handle, signal),
    async *turn(request, handle, decisions, signal) {
      // A turn that is under way is always re-attached, because no other engine can take it over.
      if (!breaker.admit() && handle === undefined) {
        throw new AppError(
          'engine_unavailable',
          `The engine ${engine.name} did not answer lately and is not asked now.`,
          {
            retryable: true,
          },
        )
      }
      let settled = false
      try {
        for await (const parts of engine.turn(request, handle, decisions, signal)) {
          // A handle is written before the gateway has answered.
          if (!settled && parts.every(({ type }) => type !== 'handle' && type !== 'attached')) {
            breaker.succeeded()
            settled = true
          }
          yield parts
        }
      } catch (error) {
        if (!settled && error instanceof AppError && error.code === 'engine_unavailable') {
          breaker.failed()
          settled = true
        }
        throw error
      } finally {
        if (!settled) breaker.abandoned()
      }
    },
  }
}
