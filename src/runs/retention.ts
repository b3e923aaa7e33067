// Periodically removes what is older than the settings say, in bounded batches: runs that have
// ended, with their events; snapshots that expired; files that nothing refers to. Messages are
// kept, because they belong to their conversation. Of several nodes, one at a time does it.

import type { Clock, Timer } from '../kit/clock.ts'
import type { FeedStore } from '../stores/feed-store.ts'
import type { FileStore } from '../stores/file-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { SnapshotStore } from '../stores/snapshot-store.ts'
import type { UpkeepStore } from '../stores/upkeep-store.ts'
import type { RunLog } from './run-dependencies.ts'

const sweepMs = 60_000
const rowsPerBatch = 200
/** Fewer, because a file may have many megabytes. */
const filesPerBatch = 5
/** How many changes of all users the feed remembers. Readers that are further behind begin again. */
const feedChangesKept = 200_000

/** A node that ends without a word is replaced after this time. Longer than two sweeps, so that the duty stays where it is. */
const dutyMs = 3 * sweepMs

/** `feed`: changes that the feed no longer remembers, `partitions`: tables of old events, `journal_rows`: events beside those of a run that is kept. */
export type RemovedKind = 'runs' | 'snapshots' | 'files' | 'feed' | 'partitions' | 'journal_rows'

export type Retention = { stop(): void; sweep(): Promise<number> }

type RetentionStore = Pick<RunStore, 'expireRuns'> &
  Pick<SnapshotStore, 'expireSnapshots'> &
  Pick<FileStore, 'expireFiles'> &
  Pick<FeedStore, 'expireFeed'> &
  Pick<UpkeepStore, 'takeDuty' | 'tidyJournal'>

export function startRetention(dependencies: {
  store: RetentionStore
  clock: Clock
  log: RunLog
  /** A name of this process that no other one has. */
  node: string
  /** Null: ended runs and snapshots are kept for ever. */
  retentionMs: number | null
  /** How long a file is kept that no message and no run refers to. */
  fileTtlMs: number
  /** Called for what was removed. */
  removed?: (kind: RemovedKind, count: number) => void
}): Retention {
  const { store, clock, log, node, retentionMs, fileTtlMs, removed: report = () => {} } = dependencies
  let timer: Timer | undefined
  let stopped = false

  const onDuty = async () => !stopped && (await store.takeDuty('retention', node, dutyMs))

  /** Returns how many rows were removed. */
  async function sweep(): Promise<number> {
    const cut = retentionMs === null ? null : clock.now() - retentionMs
    const removed: Partial<Record<RemovedKind, number>> = {}
    if (cut !== null) {
      removed.runs = await inBatches(rowsPerBatch, (limit) => store.expireRuns(cut, limit))
      removed.snapshots = await inBatches(rowsPerBatch, (limit) => store.expireSnapshots(cut, limit))
    }
    removed.files = await inBatches(filesPerBatch, (limit) => store.expireFiles(clock.now() - fileTtlMs, limit))
    const rows = Object.values(removed).reduce((sum, count) => sum + count, 0)
    removed.feed = await inBatches(rowsPerBatch, (limit) => store.expireFeed(feedChangesKept, limit))
    if (await onDuty()) {
      const { partitionsDropped, rowsRemoved } = await store.tidyJournal(cut)
      removed.partitions = partitionsDropped
      removed.journal_rows = rowsRemoved
    }
    const some = Object.entries(removed).filter(([, count]) => count > 0) as [RemovedKind, number][]
    for (const [kind, count] of some) report(kind, count)
    if (some.length > 0) log.info(Object.fromEntries(some), 'the retention removed rows')
    return rows
  }

  async function inBatches(batch: number, removeBatch: (limit: number) => Promise<number>): Promise<number> {
    let removed = 0
    while (await onDuty()) {
      const count = await removeBatch(batch)
      removed += count
      if (count < batch) break
    }
    return removed
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
