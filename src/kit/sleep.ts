import type { Clock } from './clock.ts'

/** Rejects with the signal's reason as soon as the signal is aborted. */
export function sleep(clock: Pick<Clock, 'after'>, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error)
      return
    }
    const timer = clock.after(delayMs, () => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
    const abort = (): void => {
      timer.cancel()
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', abort, { once: true })
  })
}
