// Periodically removes the journals of runs that ended, and snapshots that expired, longer
// ago than the retention setting, in bounded batches. Messages are kept, because they belong
// to their conversation.

import type { Clock, Timer } from '../kit/clock.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { SnapshotStore } from '../stores/snapshot-store.ts'
import type { RunLog } from './run-dependencies.ts'

const sweepMs = 60_000
const rowsPerBatch = 200

export type Retention = { stop(): void; sweep(): Promise<number> }

export function startRetention(dependencies: {
  store: Pick<RunStore, 'expireRuns'> & Pick<SnapshotStore, 'expireSnapshots'>
  clock: Clock
  log: RunLog
  retentionMs: number | null
}): Retention {
  const { store, clock, log, retentionMs } = dependencies
  let timer: Timer | undefined
  let stopped = false

  async function sweep(): Promise<number> {
    if (retentionMs === null) return 0
    const before = clock.now() - retentionMs
    const runs = await inBatches(() => store.expireRuns(before, rowsPerBatch))
    const snapshots = await inBatches(() => store.expireSnapshots(before, rowsPerBatch))
    if (runs + snapshots > 0) log.info({ runs, snapshots }, 'runs and snapshots older than the retention were removed')
    return runs + snapshots
  }

  async function inBatches(removeBatch: () => Promise<number>): Promise<number> {
    let removed = 0
    for (;;) {
      const count = await removeBatch()
      removed += count
      if (count < rowsPerBatch || stopped) return removed
    }
  }

  function arm(): void {
    timer = clock.after(sweepMs, () => {
      void sweep()
        .catch((error: unknown) => log.error({ err: error }, 'the retention sweep failed; trying again later'))
        .finally(() => {
          if (!stopped) arm()
        })
    })
  }
  if (retentionMs !== null) arm()
  return {
    sweep,
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}
