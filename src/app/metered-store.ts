// The store, with a measurement of how long it takes to accept runs and how many acceptances are under way. Appends are
// measured by the writers of the runs.

import type { Clock } from '../kit/clock.ts'
import type { CommitMeter } from '../runs/run-dependencies.ts'
import type { Store } from '../stores/store.ts'

export function withCommitMeter(store: Store, meter: CommitMeter, clock: Pick<Clock, 'monotonic'>): Store {
  return {
    ...store,
    async accept(input) {
      const startedAt = clock.monotonic()
      meter.commitStarted()
      try {
        return await store.accept(input)
      } finally {
        meter.commitDone(clock.monotonic() - startedAt)
      }
    },
  }
}

/** A meter that tells two others. */
export function commitMeterOf(one: CommitMeter, other: CommitMeter): CommitMeter {
  return {
    commitStarted() {
      one.commitStarted()
      other.commitStarted()
    },
    commitDone(ms) {
      one.commitDone(ms)
      other.commitDone(ms)
    },
  }
}
