// A SQLite file as the source or the target of a copy. The source is read in one transaction, so a
// server may go on writing; the target is locked as by a server.

import { existsSync, rmSync, truncateSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { copiedTables, type CopyRow, type CopyTable } from '../copy-tables.ts'
import type { CopySource, CopyTarget } from '../store-copy.ts'
import { logEndings } from './command-log.ts'
import { openReader, openWriter } from './connection.ts'
import { chunkBytes } from './file-store.ts'
import { applyLeftLog } from './left-log.ts'
import { migrate } from './migrate.ts'
import { lockFile } from './process-lock.ts'
import { toStoreError } from './sqlite-errors.ts'

/** In `store_state`, while a copy into this file has not ended. */
const unfinishedMark = 'unfinished_copy'

export function openSqliteSource(file: string): CopySource {
  if (!existsSync(file)) throw new AppError('copy_refused', `There is no database file ${file}.`)
  applyLeftLog(file)
  const db = openReader(file)
  try {
    db.exec('BEGIN')
    refuseUnfinished(db)
    return { ...sourceOf(db, file), close: async () => db.close() }
  } catch (error) {
    db.close()
    throw toStoreError(error, file)
  }
}

/** Creates the file if it does not exist. */
export function openSqliteTarget(file: string): CopyTarget {
  const lock = lockFile(file, 0)
  let db = open()
  let triggers: string[] = []

  function open(): DatabaseSync {
    const opened = openWriter(file)
    migrate(opened)
    // References are checked as a whole at the end, because that is much faster.
    opened.exec('PRAGMA foreign_keys = OFF; PRAGMA synchronous = NORMAL')
    return opened
  }

  return {
    get name() {
      return file
    },
    chunkBytes,
    columns: (table) => sourceOf(db, file).columns(table),
    count: (table) => sourceOf(db, file).count(table),
    rows: (table) => sourceOf(db, file).rows(table),
    highestNumbers: () => sourceOf(db, file).highestNumbers(),

    async state() {
      if (isUnfinished(db)) return 'unfinished'
      const used = copiedTables.some(({ name }) => db.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get() !== undefined)
      return used ? 'used' : 'empty'
    },
    async begin() {
      if (isUnfinished(db)) {
        db.close()
        for (const ending of ['-wal', '-shm', ...logEndings]) rmSync(file + ending, { force: true })
        // Emptied and not removed, so that its mode stays.
        truncateSync(file)
        db = open()
      }
      db.prepare('INSERT INTO store_state (name, value) VALUES (?, 1)').run(unfinishedMark)
      // They would date conversations, count runs and fill the feed, as if everything happened now.
      const found = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
      triggers = found.map(({ sql }) => sql as string)
      for (const { name } of found) db.exec(`DROP TRIGGER ${name as string}`)
    },
    async insert({ name }, rows) {
      const extra = name === 'file_contents' ? { put_at: 0 } : {}
      const columns = Object.keys({ ...rows[0], ...extra })
      const insert = db.prepare(
        `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map((column) => `:${column}`).join(', ')})`,
      )
      db.exec('BEGIN')
      for (const row of rows) insert.run({ ...row, ...extra })
      db.exec('COMMIT')
    },
    async finish(highestNumbers) {
      db.exec('BEGIN')
      for (const sql of triggers) db.exec(sql)
      db.exec(`UPDATE run_counts SET count = (SELECT count(*) FROM runs WHERE runs.status = run_counts.status);
        UPDATE file_contents SET put_at = coalesce((SELECT max(put_at) FROM files WHERE content = file_contents.id), 0);
        INSERT INTO notes_text (notes_text) VALUES ('rebuild')`)
      const raise = db.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
      const add = db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
      for (const name of numberedTables(db)) {
        const highest = highestNumbers[name]
        if (highest !== undefined && raise.run(highest, name).changes === 0) add.run(name, highest)
      }
      db.exec('COMMIT')
      const dangling = db.prepare('PRAGMA foreign_key_check').get()
      if (dangling !== undefined) {
        throw new AppError('copy_refused', `A row of ${String(dangling.table)} refers to a row that does not exist.`)
      }
    },
    async release() {
      db.prepare('DELETE FROM store_state WHERE name = ?').run(unfinishedMark)
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    async close() {
      db.close()
      lock.release()
    },
  }
}

function sourceOf(db: DatabaseSync, name: string): Omit<CopySource, 'close'> {
  const columnsOf = ({ name: table, without = [] }: CopyTable) =>
    db
      .prepare(`SELECT name FROM pragma_table_info(?)`)
      .all(table)
      .map((row) => row.name as string)
      .filter((column) => !without.includes(column))
  return {
    name,
    columns: async (table) => columnsOf(table),
    count: async (table) => db.prepare(`SELECT count(*) AS count FROM ${table.name}`).get()?.count as number,
    async *rows(table) {
      const columns = columnsOf(table).join(', ')
      const order = table.pieces === undefined ? '' : `ORDER BY ${table.pieces.key}, ${table.pieces.order}`
      if (table.name === 'journal') {
        // Events that are not folded yet; `journal` may have their copies.
        yield* db
          .prepare(
            `SELECT ${columns} FROM journal WHERE run_id IN (SELECT id FROM runs) UNION ALL
             SELECT ${columns} FROM journal_tail AS tail
             WHERE run_id IN (SELECT id FROM runs)
               AND last_seq > coalesce((SELECT max(last_seq) FROM journal WHERE journal.run_id = tail.run_id), 0)
             ${order}`,
          )
          .iterate() as Iterable<CopyRow>
        return
      }
      // The rows of runs do not know the newest events before these are folded.
      const tails = new Map<string, number>()
      if (table.name === 'runs') {
        const found = db.prepare('SELECT run_id, max(last_seq) AS seq FROM journal_tail GROUP BY run_id').all()
        for (const row of found) tails.set(row.run_id as string, row.seq as number)
      }
      for (const row of db.prepare(`SELECT ${columns} FROM ${table.name} ${order}`).iterate() as Iterable<CopyRow>) {
        const tail = tails.get(row['id'] as string)
        yield tail === undefined ? row : { ...row, last_seq: Math.max(tail, row['last_seq'] as number) }
      }
    },
    async highestNumbers() {
      const rows = db.prepare('SELECT name, seq FROM sqlite_sequence').all()
      return Object.fromEntries(rows.map((row) => [row.name as string, row.seq as number]))
    },
  }
}

/** Copied tables whose numbers are never used again. */
function numberedTables(db: DatabaseSync): string[] {
  const rows = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'").all()
  const names = new Set(rows.map((row) => row.name as string))
  return copiedTables.map(({ name }) => name).filter((name) => names.has(name))
}

function isUnfinished(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM store_state WHERE name = ?').get(unfinishedMark) !== undefined
}

/** Throws `config_invalid` if a copy into this file has not ended. */
export function refuseUnfinished(db: DatabaseSync): void {
  if (!isUnfinished(db)) return
  throw new AppError(
    'config_invalid',
    'This database is an unfinished copy. Run polylog copy again with the same --from and --to; it begins anew.',
  )
}
