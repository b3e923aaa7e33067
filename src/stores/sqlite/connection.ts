// Opens connections to the database file. There are exactly two: the writer in its
// worker thread, and the reader on the main thread. WAL lets them work at once.

import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'

export type Row = Record<string, SQLOutputValue>
export type Value = SQLInputValue

/** Nobody but our two connections (and a person with a shell) uses the file, so waiting is rare and short. */
const busyTimeoutMs = 5000

/** SQLite counts a negative cache_size in KiB. The hot pages of either side fit well into this. */
const cacheKib = 32 * 1024

export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(`PRAGMA cache_size = -${cacheKib}`)
  db.exec('PRAGMA temp_store = MEMORY')
  // After a burst the log file shrinks back to this, in bytes.
  db.exec('PRAGMA journal_size_limit = 67108864')
  return db
}

export function openReader(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: busyTimeoutMs, readOnly: true })
  db.exec(`PRAGMA cache_size = -${cacheKib}`)
  return db
}

/** Statements by their text, each prepared once. The texts come from a small fixed set, never from input. */
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
