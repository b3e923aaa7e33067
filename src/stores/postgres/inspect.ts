// What is in a database, read without changing it: for `polylog doctor`.

import { Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import { type DatabaseWork, inspectedRunsMax } from '../database-work.ts'
import { dbOf } from './connection.ts'
import { readMigrations } from './migrate.ts'
import { listNodes } from './node-store.ts'
import { listOpenRuns } from './run-rows.ts'

export type PostgresFacts = {
  /** As the server writes it, for example `16.4`. */
  version: string
  /** The number of the newest migration of the database (0: it has no tables yet), and of the newest one known here. */
  migration: number
  knownMigration: number
  bytes: number
  runs: number
  openRuns: number
}

/** The settings of the database server that the promises of the store depend on. */
export type PostgresSettings = {
  fsync: boolean
  fullPageWrites: boolean
  synchronousCommit: string
  connectionsMax: number
  /** Connections that are kept for superusers. */
  connectionsReserved: number
  connectionsUsed: number
}

export type PostgresWork = DatabaseWork & {
  settings: PostgresSettings
  /** How long a query without work takes. */
  queryMs: number
  /** How long a notification takes; null if none came. */
  hintMs: number | null
}

const answerMs = 5_000
/** The channel of a check, which no server listens to. */
const checkChannel = 'polylog_doctor'

/** Throws `store_unavailable` if it does not answer. The sentence never contains the URL, which may contain a password. */
export async function inspectPostgres(url: string): Promise<PostgresFacts> {
  return await inspecting(url, async (pool) => {
    const number = async (sql: string) => {
      const { rows } = await pool.query<{ n: string | number | null }>(sql)
      return Number(rows[0]?.n ?? 0)
    }
    const { rows } = await pool.query<{ server_version: string }>('SHOW server_version')
    const hasTables =
      (await number(
        "SELECT count(*) AS n FROM pg_tables WHERE tablename = 'migrations' AND schemaname = ANY (current_schemas(false))",
      )) > 0
    return {
      version: rows[0]?.server_version ?? '',
      migration: hasTables ? await number('SELECT max(number) AS n FROM migrations') : 0,
      knownMigration: readMigrations().at(-1)?.number ?? 0,
      bytes: await number('SELECT pg_database_size(current_database()) AS n'),
      runs: hasTables ? await number('SELECT count(*) AS n FROM runs') : 0,
      openRuns: hasTables ? await number('SELECT count(*) AS n FROM runs WHERE ended_at IS NULL') : 0,
    }
  })
}

/** The database must have all migrations. */
export async function inspectPostgresWork(url: string, clock: Clock): Promise<PostgresWork> {
  return await inspecting(url, async (pool) => {
    const db = dbOf(pool)
    const settings = await readSettings(pool)
    const startedAt = clock.monotonic()
    const now = Number((await db.get('SELECT polylog_now() AS now'))?.['now'])
    return {
      queryMs: clock.monotonic() - startedAt,
      now,
      settings,
      nodes: await listNodes(db),
      apiKeys: Number((await db.get('SELECT count(*) AS n FROM api_keys'))?.['n'] ?? 0),
      openRuns: await listOpenRuns(db, inspectedRunsMax),
      hintMs: await measureHint(pool, clock),
    }
  })
}

async function readSettings(pool: Pool): Promise<PostgresSettings> {
  const { rows } = await pool.query<{
    fsync: string
    pages: string
    commit: string
    most: number
    reserved: number
    used: string
  }>(
    `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
       current_setting('synchronous_commit') AS commit, current_setting('max_connections')::int AS most,
       current_setting('superuser_reserved_connections')::int AS reserved,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used`,
  )
  const [row] = rows
  return {
    fsync: row?.fsync === 'on',
    fullPageWrites: row?.pages === 'on',
    synchronousCommit: row?.commit ?? '',
    connectionsMax: row?.most ?? 0,
    connectionsReserved: row?.reserved ?? 0,
    connectionsUsed: Number(row?.used ?? 0),
  }
}

/** Some connection poolers take LISTEN and deliver nothing. */
async function measureHint(pool: Pool, clock: Clock): Promise<number | null> {
  const client = await pool.connect()
  try {
    await client.query(`LISTEN ${checkChannel}`)
    const startedAt = clock.monotonic()
    const heard = new Promise<number | null>((resolve) => {
      const timer = clock.after(answerMs, () => resolve(null))
      client.once('notification', () => {
        timer.cancel()
        resolve(clock.monotonic() - startedAt)
      })
    })
    await client.query(`NOTIFY ${checkChannel}`)
    return await heard
  } finally {
    client.release(true)
  }
}

async function inspecting<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = new Pool({ connectionString: url, max: 1, connectionTimeoutMillis: answerMs, query_timeout: answerMs })
  pool.on('error', () => {})
  try {
    return await work(pool)
  } catch (cause) {
    const reason =
      cause instanceof Error && cause.message !== '' ? cause.message : String((cause as { code?: unknown }).code)
    throw new AppError('store_unavailable', `The database does not answer: ${reason}.`, { cause })
  } finally {
    await pool.end().catch(() => {})
  }
}
