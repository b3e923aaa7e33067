// Periodically removes the journals of runs that ended, and snapshots that expired, longer
// ago than the retention setting, in bounded batches. Messages are kept, because they belong
// to their conversation. Files that nothing refers to have a time limit of their own.

import type { Clock, Timer } from '../kit/clock.ts'
import type { FeedStore } from '../stores/feed-store.ts'
import type { FileStore } from '../stores/file-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { SnapshotStore } from '../stores/snapshot-store.ts'
import type { RunLog } from './run-dependencies.ts'

const sweepMs = 60_000
const rowsPerBatch = 200
/** Fewer, because a file may have many megabytes. */
const filesPerBatch = 5
/** How many changes of all users the feed remembers. Readers that are further behind begin again. */
const feedChangesKept = 200_000

export type Retention = { stop(): void; sweep(): Promise<number> }

export function startRetention(dependencies: {
  store: Pick<RunStore, 'expireRuns'> &
    Pick<SnapshotStore, 'expireSnapshots'> &
    Pick<FileStore, 'expireFiles'> &
    Pick<FeedStore, 'expireFeed'>
  clock: Clock
  log: RunLog
  /** Null: ended runs and snapshots are kept for ever. */
  retentionMs: number | null
  /** How long a file is kept that no message and no run refers to. */
  fileTtlMs: number
}): Retention {
  const { store, clock, log, retentionMs, fileTtlMs } = dependencies
  let timer: Timer | undefined
  let stopped = false

  async function sweep(): Promise<number> {
    const aged = retentionMs === null ? 0 : await sweepRuns(clock.now() - retentionMs)
    const files = await inBatches(() => store.expireFiles(clock.now() - fileTtlMs, filesPerBatch), filesPerBatch)
    await inBatches(() => store.expireFeed(feedChangesKept, rowsPerBatch))
    if (files > 0) log.info({ files }, 'files that nothing refers to were removed')
    return aged + files
  }

  async function sweepRuns(before: number): Promise<number> {
    const runs = await inBatches(() => store.expireRuns(before, rowsPerBatch))
    const snapshots = await inBatches(() => store.expireSnapshots(before, rowsPerBatch))
    if (runs + snapshots > 0) log.info({ runs, snapshots }, 'runs and snapshots older than the retention were removed')
    return runs + snapshots
  }

  async function inBatches(removeBatch: () => Promise<number>, batch = rowsPerBatch): Promise<number> {
    let removed = 0
    for (;;) {
      const count = await removeBatch()
      removed += count
      if (count < batch || stopped) return removed
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
  arm()
  return {
    sweep,
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}
