// The database that tests run on: SQLite, or PostgreSQL if POLYLOG_TEST_DATABASE=postgres. A test
// names its database by a path, which is the file on SQLite. On PostgreSQL a path stands for a
// database of the test server while it is open, and for its rows in memory while it is closed.

import assert from 'node:assert/strict'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Clock, systemClock } from '../../src/kit/clock.ts'
import { AppError } from '../../src/errors/app-error.ts'
import { logState } from '../../src/stores/sqlite/batch-writer.ts'
import { logEndings, readLog } from '../../src/stores/sqlite/command-log.ts'
import { applyLeftLog } from '../../src/stores/sqlite/left-log.ts'
import { lockFile } from '../../src/stores/sqlite/process-lock.ts'
import type { Store } from '../../src/stores/store.ts'
import type { DatabaseRows, TestDatabase } from './postgres.ts'
import { until } from './until.ts'

const chosen = process.env['POLYLOG_TEST_DATABASE'] ?? 'sqlite'
assert.ok(chosen === 'sqlite' || chosen === 'postgres', 'POLYLOG_TEST_DATABASE is sqlite or postgres')

export const onPostgres = chosen === 'postgres'

/** Loaded when it is needed: most tests use one database, and many only start a server as another process. */
const postgres = () => import('./postgres.ts')

/** Why a test about the SQLite file does not run on PostgreSQL; for the option `skip`. */
export function onlyOnSqlite(why: string): string | false {
  return onPostgres && `SQLite only: ${why}`
}

/** Databases of the test server by path: one in use, or the rows of a closed one. */
const places = new Map<string, { database: TestDatabase } | { rows: DatabaseRows }>()

export type TestStoreOptions = {
  /** Judges leases and deadlines. Absent: the system clock. */
  time?: Pick<Clock, 'now' | 'monotonic'>
  /** Its contents can be opened again under the same path after `close`. */
  keep?: boolean
  /** The database that another process has for its path. */
  databaseUrl?: string | undefined
}

export type TestStore = {
  store: Store
  /** Resolves when the database works on nothing that was asked for by now, or because of it. */
  settled(): Promise<void>
}

/** A store on the database of this path, as a process opens it that finds what a killed process left. */
export async function openTestStore(
  path: string,
  { time = systemClock, keep = false, databaseUrl }: TestStoreOptions = {},
): Promise<TestStore> {
  if (!onPostgres) {
    const { openSqliteStore } = await import('../../src/stores/sqlite/sqlite-store.ts')
    return watchedStore(await openSqliteStore({ file: path, commitGatherMs: 0, clock: systemClock, time }))
  }
  const url = databaseUrl ?? (await databaseAt(path)).url
  const { openPostgresStore } = await import('../../src/stores/postgres/postgres-store.ts')
  const store = await openPostgresStore({ url, clock: systemClock, commitGatherMs: 0, connectionsMax: 6 })
  const watched = time === systemClock ? watchedStore(store) : await timedStore(store, url, time)
  const close = async () => {
    await watched.close()
    await closePlace(path, keep)
  }
  return { store: { ...watched.store, close }, settled: watched.settled }
}

/** The database as a `kill -9` at this instant would leave it. On SQLite only while no commit is under way. */
export async function crashImage(from: string, to: string): Promise<void> {
  if (!onPostgres) {
    // The log first: the writer may apply it meanwhile, and then the database has what the copy of the log has too.
    for (const ending of [...logEndings, '', '-wal'])
      if (existsSync(from + ending)) copyFileSync(from + ending, to + ending)
    return
  }
  const place = places.get(from)
  assert.ok(place !== undefined, `there is no database at ${from}`)
  places.set(to, { rows: 'rows' in place ? place.rows : await rowsOf(place.database) })
}

/** The settings that make a server use the database of its data folder, on which no other server runs. */
export async function databaseSettings(dataDir: string): Promise<Record<string, string>> {
  if (!onPostgres) return {}
  const known = places.has(dataDir)
  const { url } = await databaseAt(dataDir)
  if (known) await endLeases(url)
  return { POLYLOG_DATABASE_URL: url }
}

/** To be called when the servers on this data folder have ended for good. */
export async function dropDatabase(dataDir: string): Promise<void> {
  if (places.has(dataDir)) await closePlace(dataDir, false)
}

/** SQL on the database of a data folder, in the part of the language that both databases have. */
export async function queryDatabase(
  dataDir: string,
  sql: string,
  ...values: (string | number)[]
): Promise<Record<string, unknown>[]> {
  if (onPostgres) return await (await postgres()).query((await databaseAt(dataDir)).url, sql, ...values)
  const file = join(dataDir, 'polylog.db')
  await untilLogIsApplied(file)
  const db = new DatabaseSync(file)
  try {
    return db.prepare(sql).all(...values)
  } finally {
    db.close()
  }
}

/** The server of the file may be in this process, so it is not waited for in a way that blocks it. */
async function untilLogIsApplied(file: string): Promise<void> {
  if (isServed(file)) await until('the server has applied its log', async () => unappliedRecords(file) === 0)
  else applyLeftLog(file)
}

function isServed(file: string): boolean {
  try {
    lockFile(file, 0).release()
    return false
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'config_invalid')
    return true
  }
}

/** How many records only the log has. */
export function unappliedRecords(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return readLog(file, logState(db)).length
  } finally {
    db.close()
  }
}

/** Changes the stored lines of a journal, one for each event, as damage on disk would. The server must be stopped. */
export async function changeJournal(
  dataDir: string,
  runId: string,
  change: (line: string, index: number, lines: readonly string[]) => string,
): Promise<void> {
  const tables = onPostgres ? ['journal'] : ['journal', 'journal_tail']
  const stored: { table: string; firstSeq: unknown; lines: string[] }[] = []
  for (const table of tables) {
    const sql = `SELECT first_seq, body FROM ${table} WHERE run_id = ? ORDER BY first_seq`
    for (const row of await queryDatabase(dataDir, sql, runId))
      stored.push({ table, firstSeq: row['first_seq'], lines: String(row['body']).split('\n') })
  }
  const lines = stored.flatMap((row) => row.lines)
  let index = 0
  for (const row of stored) {
    const body = row.lines.map((line) => change(line, index++, lines)).join('\n')
    const sql = `UPDATE ${row.table} SET body = ? WHERE run_id = ? AND first_seq = ?`
    await queryDatabase(dataDir, sql, body, runId, Number(row.firstSeq))
  }
}

async function databaseAt(path: string): Promise<TestDatabase> {
  const place = places.get(path)
  if (place !== undefined && 'database' in place) return place.database
  const { newStoreDatabase, writeAllRows } = await postgres()
  const database = await newStoreDatabase()
  places.set(path, { database })
  if (place !== undefined) {
    await writeAllRows(database.url, place.rows)
    await endLeases(database.url)
  }
  return database
}

/**
 * As if the time of every lease were over. The process that held them is gone, and a test with a clock of its own would wait
 * for ever.
 */
async function endLeases(url: string): Promise<void> {
  await (await postgres()).query(url, 'UPDATE runs SET lease_until = 0 WHERE lease_owner IS NOT NULL')
}

async function rowsOf({ url }: TestDatabase): Promise<DatabaseRows> {
  return await (await postgres()).readAllRows(url)
}

async function closePlace(path: string, keep: boolean): Promise<void> {
  const place = places.get(path)
  if (place === undefined || !('database' in place)) return
  if (keep) places.set(path, { rows: await rowsOf(place.database) })
  else places.delete(path)
  await place.database.drop()
}

type Watched = TestStore & { close(): Promise<void> }

/** `before` is called with every call and may delay it. */
function watchedStore(store: Store, before: () => Promise<unknown> | undefined = () => undefined): Watched {
  const underWay = new Set<Promise<unknown>>()
  const watched =
    (method: (...given: unknown[]) => Promise<unknown>) =>
    (...given: unknown[]) => {
      const delay = before()
      const work = delay === undefined ? method(...given) : delay.then(() => method(...given))
      underWay.add(work)
      void work.then(
        () => underWay.delete(work),
        () => underWay.delete(work),
      )
      return work
    }
  const methods = Object.entries(store).map(([name, method]) => [name, watched(method as never)])
  return {
    store: Object.fromEntries(methods) as Store,
    async settled() {
      while (underWay.size > 0) {
        await Promise.allSettled(underWay)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    close: () => store.close(),
  }
}

/** The clock of the database shows `time` whenever the store is used. */
async function timedStore(store: Store, url: string, time: Pick<Clock, 'now'>): Promise<Watched> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  let shown = time.now()
  const set = () => client.query(`DELETE FROM test_time; INSERT INTO test_time (now) VALUES (${Math.round(shown)})`)
  await set()
  let setting: Promise<unknown> | undefined
  const watched = watchedStore(store, () => {
    if (time.now() !== shown) {
      shown = time.now()
      setting = set()
    }
    return setting
  })
  return {
    ...watched,
    async close() {
      await store.close()
      await client.end()
    },
  }
}
