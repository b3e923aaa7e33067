// A crash of the database may lose deltas that readers have seen. The node that executes the run stores
// them again within a lease. A reader that comes back earlier has more than the journal, and waits here.

import type { Clock } from '../kit/clock.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'

/** The first wait. Doubles up to `pollMaxMs`. */
const pollMs = 20
const pollMaxMs = 500

export type RestoredRunDependencies = {
  store: Pick<RunStore, 'readRun' | 'msSinceCrash'>
  clock: Clock
  leaseMs: number
}

/** The row of the run when its journal has reached `seq`, or when that will not happen. Waits only after a crash, and at most one lease. */
export async function restoredRun(
  { store, clock, leaseMs }: RestoredRunDependencies,
  run: RunRow,
  seq: number,
): Promise<RunRow> {
  let current = run
  if (store.msSinceCrash === undefined || (await store.msSinceCrash()) > 2 * leaseMs) return current
  const startedAt = clock.monotonic()
  for (let waitMs = pollMs; ; waitMs = Math.min(2 * waitMs, pollMaxMs)) {
    if (current.lastSeq >= seq || current.endedAt !== null || clock.monotonic() - startedAt > leaseMs) return current
    await new Promise<void>((resolve) => clock.after(waitMs, resolve))
    const row = await store.readRun(run.id)
    if (row === undefined) return current
    current = row
  }
}
