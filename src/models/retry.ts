// Retries a model request that failed before its first part. After the first part there is
// no retry, because the user has already seen text.
//
// A retry budget limits when the last attempt may start, because a user is waiting for the
// first word. The duration of one attempt is not limited: a slow first token is not a failure.

import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { sleep } from '../kit/sleep.ts'
import type { ModelPart } from './model.ts'

export type RetryOptions = {
  clock: Clock
  /** 0 ≤ random() < 1. The jitter spreads the retries of runs that failed at the same time. */
  random: () => number
  retries: number
  /** The retry budget: no attempt starts later than this after the first one. */
  budgetMs: number
}

/** Starts an attempt; `retry` is 0 for the first one. */
export type StartAttempt = (retry: number) => AsyncIterable<ModelPart[]>

export const defaultRetry = { retries: 2, budgetMs: 8_000 } as const

const firstDelayMs = 500

export function withRetries(
  start: StartAttempt,
  signal: AbortSignal,
  options: RetryOptions,
): AsyncIterable<ModelPart[]> {
  return new Attempts(start, signal, options)
}

/** Can be iterated once. */
class Attempts implements AsyncIterableIterator<ModelPart[]> {
  readonly #start: StartAttempt
  readonly #signal: AbortSignal
  readonly #options: RetryOptions
  #current: AsyncIterator<ModelPart[]> | undefined
  #begun = false
  #attempt = 0
  #startedAt = 0

  constructor(start: StartAttempt, signal: AbortSignal, options: RetryOptions) {
    this.#start = start
    this.#signal = signal
    this.#options = options
  }

  next(): Promise<IteratorResult<ModelPart[]>> {
    // After the first part this adds no promise of its own, because it runs for every read.
    if (this.#begun && this.#current !== undefined) return this.#current.next()
    // The attempt has only told what it has spent, and fails now.
    if (this.#current !== undefined) return this.#firstOf(this.#current)
    this.#startedAt = this.#options.clock.monotonic()
    return this.#ask()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async return(): Promise<IteratorResult<ModelPart[]>> {
    this.#begun = true
    await this.#current?.return?.()
    return { done: true, value: undefined }
  }

  /** Not an async function, because a model may be silent for long, and its frame would be held meanwhile. */
  #ask(): Promise<IteratorResult<ModelPart[]>> {
    try {
      this.#current = this.#start(this.#attempt)[Symbol.asyncIterator]()
      return this.#firstOf(this.#current)
    } catch (error) {
      return this.#askAgain(error)
    }
  }

  #firstOf(attempt: AsyncIterator<ModelPart[]>): Promise<IteratorResult<ModelPart[]>> {
    return attempt.next().then(
      (result) => {
        this.#begun = result.done === true || result.value.some(({ type }) => type !== 'spent')
        return result
      },
      (error: unknown) => this.#askAgain(error),
    )
  }

  async #askAgain(error: unknown): Promise<IteratorResult<ModelPart[]>> {
    const { clock, random, retries, budgetMs } = this.#options
    if (this.#signal.aborted || this.#attempt >= retries) throw error
    if (!(error instanceof AppError) || !error.retryable) throw error
    const delayMs = delayBefore(this.#attempt, error, random)
    if (clock.monotonic() - this.#startedAt + delayMs > budgetMs) throw error
    await sleep(clock, delayMs, this.#signal)
    this.#attempt += 1
    return await this.#ask()
  }
}

function delayBefore(attempt: number, error: AppError, random: () => number): number {
  const backOff = firstDelayMs * 2 ** attempt
  const jittered = backOff / 2 + (backOff / 2) * random()
  const asked = error.details?.['retryAfterMs']
  // Never earlier than the provider's Retry-After.
  return typeof asked === 'number' ? Math.max(asked, jittered) : jittered
}
