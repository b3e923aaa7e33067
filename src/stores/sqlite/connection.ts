// Opens connections to the database file. There are exactly two: the writer in its
// worker thread, and the reader on the main thread. WAL mode lets both work at the same time.

import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'

export type Row = Record<string, SQLOutputValue>
export type Value = SQLInputValue

/** Only our two connections (and perhaps an operator's sqlite3 shell) use the file, so waits are rare and short. */
const busyTimeoutMs = 5000

/** SQLite reads a negative cache_size as KiB. This is enough for the hot pages of either connection. */
const cacheKib = 32 * 1024

/** Four times SQLite's default: short runs change the same pages again and again, and a checkpoint writes each of them once. */
const checkpointPages = 4000

export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(`PRAGMA cache_size = -${cacheKib}`)
  db.exec('PRAGMA temp_store = MEMORY')
  db.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
  // SQLite truncates the WAL file to this many bytes after a burst of writes.
  db.exec('PRAGMA journal_size_limit = 67108864')
  return db
}

export function openReader(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: busyTimeoutMs, readOnly: true })
  db.exec(`PRAGMA cache_size = -${cacheKib}`)
  return db
}

/** Prepares each SQL text once. The texts must come from a small fixed set, never from user input, because the cache has no limit. */
export function statementCache(db: DatabaseSync): (sql: string) => StatementSync {
  const known = new Map<string, StatementSync>()
  return (sql) => {
    let statement = known.get(sql)
    if (statement === undefined) {
      statement = db.prepare(sql)
      known.set(sql, statement)
    }
    return statement
  }
}
