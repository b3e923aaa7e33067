// Opens the store that the settings select: a PostgreSQL database that several servers may share,
// or the SQLite file in the data folder, which belongs to one server. The code of the other one is not
// loaded.

import { setTimeout } from 'node:timers/promises'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import type { Store } from '../stores/store.ts'
import type { Config } from './config.ts'
import { prepareDataFolder, prepareDatabaseFile, prepareWorkspaceRoot } from './data-folder.ts'
import type { Log } from './log.ts'

/** How long a start waits for an old server that still holds the lock on the data folder. */
const lockWaitMs = 5_000

/** How long a start waits for a database server that does not answer: both may have been started at the same time. */
const databaseWaitMs = 15_000

export async function openStore(config: Config, log: Log, clock: Clock): Promise<Store> {
  const warn = (sentence: string) => log.warn(sentence)
  prepareDataFolder(config.dataDir, warn)
  prepareWorkspaceRoot(config.workspaceDir, config.dataDir, warn)
  const onError = (error: unknown) => log.error({ err: error }, 'the store failed')
  if (config.databaseUrl !== null) {
    const { openPostgresStore } = await import('../stores/postgres/postgres-store.ts')
    const { partitionPeriodMs } = await import('../stores/postgres/journal-partitions.ts')
    return await openPostgresStore({
      url: config.databaseUrl,
      connectionsMax: config.databaseConnections,
      clock,
      partitionMs: partitionPeriodMs(config.limits.retentionMs),
      atStart: {
        waitMs: databaseWaitMs,
        pause: (ms) => setTimeout(ms),
        onWait: (reason) =>
          log.info(`the database does not answer (${reason}); waiting up to ${databaseWaitMs / 1000} s for it`),
      },
      onError,
    })
  }
  const { openSqliteStore } = await import('../stores/sqlite/sqlite-store.ts')
  const file = prepareDatabaseFile(config.dataDir, warn)
  const open = (waitMs: number) => openSqliteStore({ file, clock, lockWaitMs: waitMs, onError })
  try {
    return await open(0)
  } catch (error) {
    if (!(error instanceof AppError) || error.details?.['locked'] !== true) throw error
    log.info(`another server uses the data folder; waiting up to ${lockWaitMs / 1000} s for it to stop`)
    return await open(lockWaitMs)
  }
}
