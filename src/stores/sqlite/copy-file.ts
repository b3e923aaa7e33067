// Copies of a database file: a consistent one while a server writes to it, and the check of one before it is used. VACUUM
// INTO reads one snapshot, so it never waits for the writer and the writer never waits for it.

import { closeSync, existsSync, fsyncSync, openSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { type DatabaseWork, inspectedRunsMax } from '../database-work.ts'
import { openReader } from './connection.ts'
import { applyLeftLog } from './left-log.ts'
import { readMigrations } from './migrate.ts'
import { nodeLister } from './node-store.ts'
import { runReader } from './run-rows.ts'
import { toStoreError } from './sqlite-errors.ts'

export type DatabaseFacts = {
  /** The number of its newest migration, and of the newest one that this version knows. */
  migration: number
  knownMigration: number
  bytes: number
  runs: number
  openRuns: number
  conversations: number
}

/** More problems than this say no more. */
const problemsMax = 5

/** Writes a snapshot of `file` to `target`, which must not exist, and syncs it to disk. Blocks its thread. */
export function copyDatabase(file: string, target: string): void {
  try {
    applyLeftLog(file)
    // A readable and writable connection: a read-only one cannot recover the WAL of a server that was killed.
    const db = new DatabaseSync(file)
    try {
      db.prepare('VACUUM INTO ?').run(target)
    } finally {
      db.close()
    }
    const written = openSync(target, 'r+')
    fsyncSync(written)
    closeSync(written)
  } catch (error) {
    throw toStoreError(error, file)
  }
}

/** Reads what is in a database, without changing it. Throws `store_damaged` or `config_invalid` if it is none of ours. */
export function inspectFile(file: string): DatabaseFacts {
  if (!existsSync(file)) throw new AppError('config_invalid', `There is no file ${file}.`)
  return withReader(file, (db) => {
    const count = (sql: string) => Number(db.prepare(sql).get()?.['n'] ?? 0)
    const hasMigrations = count("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('migrations', 'runs')") === 2
    if (!hasMigrations) throw new AppError('config_invalid', `${file} is a SQLite file, but not one of this server.`)
    return {
      migration: count('SELECT max(number) AS n FROM migrations'),
      knownMigration: readMigrations().at(-1)?.number ?? 0,
      bytes: count('SELECT page_count * page_size AS n FROM pragma_page_count, pragma_page_size'),
      runs: count('SELECT count(*) AS n FROM runs'),
      openRuns: count('SELECT count(*) AS n FROM runs WHERE ended_at IS NULL'),
      conversations: count('SELECT count(*) AS n FROM conversations'),
    }
  })
}

export type FileWork = DatabaseWork & {
  /** `wal`, unless another program changed it. */
  journalMode: string
  /** Bytes that are in the write-ahead log and not yet in the file. */
  walBytes: number
}

/** The file must have all migrations. */
export function inspectFileWork(file: string, now: number): FileWork {
  return withReader(file, (db) => ({
    now,
    nodes: nodeLister(db)(now),
    apiKeys: Number(db.prepare('SELECT count(*) AS n FROM api_keys').get()?.['n'] ?? 0),
    openRuns: runReader(db).allOpen(inspectedRunsMax),
    journalMode: String(db.prepare('PRAGMA journal_mode').get()?.['journal_mode']),
    walBytes: statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
  }))
}

/** Reads every page. The sentences of SQLite; empty if the file is sound. */
export function damageOf(file: string): string[] {
  return withReader(file, (db) => {
    const rows = db.prepare(`PRAGMA integrity_check(${problemsMax})`).all()
    const sentences = rows.map((row) => String(Object.values(row)[0]))
    const broken = db.prepare('PRAGMA foreign_key_check').all().length
    return [
      ...sentences.filter((sentence) => sentence !== 'ok'),
      ...(broken === 0 ? [] : [`${broken} rows refer to rows that do not exist`]),
    ]
  })
}

function withReader<T>(file: string, work: (db: DatabaseSync) => T): T {
  try {
    const db = openReader(file)
    try {
      return work(db)
    } finally {
      db.close()
    }
  } catch (error) {
    throw toStoreError(error, file)
  }
}
