// Marks code of the operator (tools and hooks of polylog.config.ts) while it runs and in
// everything that it starts: promises, timers, callbacks. An exception that such code does
// not catch would end the process; the handlers of main.ts look here to learn whose it is.

import { AsyncLocalStorage } from 'node:async_hooks'

export type UserCode = {
  /** For the log, such as `the tool refund_order`. */
  readonly name: string
  /** Receives an exception that the code did not catch. May be called after the work is over. */
  fail(error: unknown): void
}

const storage = new AsyncLocalStorage<UserCode>()

/** Runs the work and settles as it does, or rejects as soon as something that it started throws uncaught. */
export function runUserCode<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    storage.run({ name, fail: reject }, () => {
      Promise.resolve(work()).then(resolve, reject)
    })
  })
}

/** Runs work that must answer at once. If it returns a promise all the same, that promise may reject unnoticed. */
export function callUserCode<T>(name: string, work: () => T): T {
  return storage.run({ name, fail: () => {} }, () => {
    const result = work()
    if (isPromiseLike(result)) Promise.resolve(result).catch(() => {})
    return result
  })
}

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value
}

export function currentUserCode(): UserCode | undefined {
  return storage.getStore()
}
