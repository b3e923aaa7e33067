// The store, with a measurement of how long its commits take and how many are under way.

import type { Clock } from '../kit/clock.ts'
import type { Store } from '../stores/store.ts'

export type CommitMeter = {
  /** A commit was asked for. */
  commitStarted(): void
  /** It was done, or it failed. */
  commitDone(ms: number): void
}

export function withCommitMeter(store: Store, meters: readonly CommitMeter[], clock: Pick<Clock, 'monotonic'>): Store {
  /** Not an async function, because it is called for every token. */
  function measured<T>(work: Promise<T>): Promise<T> {
    const startedAt = clock.monotonic()
    for (const meter of meters) meter.commitStarted()
    const count = () => {
      const ms = clock.monotonic() - startedAt
      for (const meter of meters) meter.commitDone(ms)
    }
    work.then(count, count)
    return work
  }
  return {
    ...store,
    append: (write) => measured(store.append(write)),
    accept: (input) => measured(store.accept(input)),
  }
}
