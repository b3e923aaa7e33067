// The store in a PostgreSQL database. A write is one transaction; appends that hold only deltas
// of a run are gathered and written together. Nothing is cached: every fact that a write depends
// on is compared in the database, so several processes may use it.

import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { archiveStore } from './archive-store.ts'
import { comparisonStore } from './comparison-store.ts'
import { dbOf, openPool, type PostgresOptions, transaction } from './connection.ts'
import { contactActivityStore } from './contact-activity-store.ts'
import { contactRecordStore } from './contact-record-store.ts'
import { contactStore } from './contact-store.ts'
import { conversationStore } from './conversation-store.ts'
import { refuseUnfinishedCopy } from './copy-end.ts'
import { DeltaQueue } from './delta-queue.ts'
import { feedbackStore } from './feedback-store.ts'
import { feedStore, startFeed } from './feed-store.ts'
import { fileStore } from './file-store.ts'
import { type FirstConnectionOptions, startError, waitForDatabase } from './first-connection.ts'
import { interactionStore } from './interaction-store.ts'
import { JournalPartitions } from './journal-partitions.ts'
import { keyStore } from './key-store.ts'
import { messageStore } from './message-store.ts'
import { migrate } from './migrate.ts'
import { nodeStore } from './node-store.ts'
import { noteStore } from './note-store.ts'
import type { PartAccess } from './part-access.ts'
import { toPostgresError } from './postgres-errors.ts'
import { rateStore } from './rate-store.ts'
import { runStore } from './run-store.ts'
import { snapshotStore } from './snapshot-store.ts'
import { upkeepStore } from './upkeep-store.ts'
import { usageStore } from './usage-store.ts'
import { workspaceStore } from './workspace-store.ts'

/** Long enough to batch the deltas of many runs, short compared to the time between two tokens. */
const commitGatherMsDefault = 4

export type PostgresStoreOptions = PostgresOptions & {
  /** Used only to pace commits; no stored time comes from it. */
  clock: Clock
  /** Minimum time between the starts of two commits that hold only deltas. */
  commitGatherMs?: number
  /** How to wait for a database that does not answer; absent: not at all. */
  atStart?: Omit<FirstConnectionOptions, 'clock'>
  /** How long the runs of one partition of the journal are accepted; see `partitionPeriodMs`. */
  partitionMs?: number
}

/** Throws `store_unavailable` if the database cannot be reached, `config_invalid` if it cannot be used or a newer version wrote it. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { clock, atStart = { waitMs: 0, pause: async () => {} } } = options
  const pool = openPool(options)
  try {
    await waitForDatabase(pool, { clock, ...atStart })
    await migrate(pool)
    await refuseUnfinishedCopy(pool)
    await transaction(pool, true, startFeed)
  } catch (error) {
    await pool.end()
    throw startError(error)
  }
  const db = dbOf(pool)
  const deltas = new DeltaQueue(pool, options.clock, options.commitGatherMs ?? commitGatherMsDefault)
  const partitions = new JournalPartitions(pool, options.partitionMs)
  const open = new Set<Promise<unknown>>()
  let closing: Promise<void> | undefined

  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    if (closing !== undefined) throw new AppError('store_unavailable', 'The store is closed. Start the server again.')
    const running = work()
    open.add(running)
    try {
      return await running
    } catch (error) {
      throw toPostgresError(error)
    } finally {
      open.delete(running)
    }
  }

  const access: PartAccess = {
    guarded,
    read: (query) => guarded(() => query(db)),
    write: (work) => guarded(() => transaction(pool, true, work)),
  }
  return {
    ...runStore(access, (durable, work) => transaction(pool, durable, work), deltas, partitions),
    ...conversationStore(access),
    ...messageStore(access),
    ...interactionStore(access),
    ...feedbackStore(access),
    ...comparisonStore(access),
    ...workspaceStore(access),
    ...noteStore(access),
    ...nodeStore(access, (durable, work) => transaction(pool, durable, work)),
    ...keyStore(access),
    ...fileStore(access),
    ...snapshotStore(access),
    ...usageStore(access),
    ...contactStore(access),
    ...contactRecordStore(access),
    ...contactActivityStore(access),
    ...archiveStore(access),
    ...feedStore(access),
    sharedRates: rateStore(access),
    ...upkeepStore(access, partitions),
    connections: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),

    async check() {
      await access.write((writer) =>
        writer.run('INSERT INTO store_checks (at) VALUES (now()) ON CONFLICT (id) DO UPDATE SET at = now()'),
      )
    },

    close() {
      closing ??= Promise.allSettled(open).then(() => pool.end())
      return closing
    },
  }
}
