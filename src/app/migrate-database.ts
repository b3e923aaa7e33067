// `polylog migrate`: brings the tables of the database to this version, without a server. A server does the same at its
// start; the command is for deployments that want it done, or refused, before any node is replaced.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../kit/clock.ts'
import { openPool } from '../stores/postgres/connection.ts'
import { startError, waitForDatabase } from '../stores/postgres/first-connection.ts'
import * as postgres from '../stores/postgres/migrate.ts'
import { openReader, openWriter } from '../stores/sqlite/connection.ts'
import * as sqlite from '../stores/sqlite/migrate.ts'
import { lockFile } from '../stores/sqlite/process-lock.ts'
import { toStoreError } from '../stores/sqlite/sqlite-errors.ts'
import type { Config } from './config.ts'
import { databaseName, prepareDatabaseFile, prepareDataFolder } from './data-folder.ts'
import { urlWithoutSecrets } from './settings.ts'

export type MigrationOptions = {
  /** Only names the migrations. */
  check: boolean
  note: (sentence: string) => void
}

/** The names of migrations, in their order. With `check`, all missing ones are `pending`. */
export type MigrationReport = { database: string; applied: string[]; pending: string[] }

/** Containers and their database often start together. */
const databaseWaitMs = 15_000
/** Another process may be migrating the same file. */
const lockWaitMs = 60_000

export async function migrateDatabase(
  { databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>,
  options: MigrationOptions,
): Promise<MigrationReport> {
  return databaseUrl === null ? migrateFile(dataDir, options) : await migratePostgres(databaseUrl, options)
}

async function migratePostgres(url: string, { check, note }: MigrationOptions): Promise<MigrationReport> {
  const pool = openPool({ url, connectionsMax: 1 })
  const database = urlWithoutSecrets(url) ?? ''
  try {
    await waitForDatabase(pool, {
      clock: systemClock,
      waitMs: databaseWaitMs,
      pause: (ms) => setTimeout(ms),
      onWait: (reason) => note(`The database does not answer (${reason}); waiting up to ${databaseWaitMs / 1000} s.`),
    })
    if (check) return { database, applied: [], pending: await postgres.pendingMigrations(pool) }
    return { database, applied: await postgres.migrate(pool), pending: [] }
  } catch (error) {
    throw startError(error)
  } finally {
    await pool.end()
  }
}

function migrateFile(dataDir: string, { check, note }: MigrationOptions): MigrationReport {
  const database = join(dataDir, databaseName)
  try {
    // A server that uses the file has migrated it, so a file without missing migrations needs no lock.
    const pending = pendingOf(database)
    if (check || pending.length === 0) return { database, applied: [], pending }
    prepareDataFolder(dataDir, note)
    const file = prepareDatabaseFile(dataDir, note)
    const lock = lockFile(file, lockWaitMs)
    try {
      const db = openWriter(file)
      try {
        return { database, applied: sqlite.migrate(db), pending: [] }
      } finally {
        db.close()
      }
    } finally {
      lock.release()
    }
  } catch (error) {
    throw toStoreError(error, database)
  }
}

function pendingOf(file: string): string[] {
  if (!existsSync(file) || statSync(file).size === 0) return sqlite.readMigrations().map(({ name }) => name)
  const db = openReader(file)
  try {
    return sqlite.pendingMigrations(db)
  } finally {
    db.close()
  }
}
