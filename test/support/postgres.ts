// PostgreSQL databases for tests. `npm test` starts one server for all its processes and gives
// its address in POLYLOG_TEST_POSTGRES; a test file that is run alone starts its own. A database
// is a copy of a template with the tables of the store, and is emptied and used again, because
// that takes a tenth of the time.

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { systemClock } from '../../src/kit/clock.ts'
import { openPool } from '../../src/stores/postgres/connection.ts'
import { JournalPartitions } from '../../src/stores/postgres/journal-partitions.ts'
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { startPostgresServer } from './postgres-server.ts'

export type TestDatabase = {
  readonly url: string
  /** Empties the database and gives it back. Connections of servers that were killed may still be open. */
  drop(): Promise<void>
}

const templateName = 'polylog_template'

/** Any number that no other lock on the test server has. */
const templateLock = 4_711

/**
 * A test that inserts a time into `test_time` stops the clock of its database; without one it goes as usual. The database has
 * been working for long.
 */
const testClock = `
  CREATE TABLE test_time (now BIGINT NOT NULL);
  INSERT INTO database_starts (at) VALUES (0);
  CREATE OR REPLACE FUNCTION polylog_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS
    'SELECT coalesce((SELECT now FROM test_time), (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)'`

let server: Promise<string> | undefined
const emptied: TestDatabase[] = []

/** A database with the tables of the store and no rows. */
export async function newStoreDatabase(): Promise<TestDatabase> {
  const used = emptied.pop()
  if (used !== undefined) return used
  const admin = await preparedServer()
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`
  await query(admin, `CREATE DATABASE ${name} TEMPLATE ${templateName} STRATEGY file_copy`)
  const url = urlOf(admin, name)
  const database: TestDatabase = {
    url,
    async drop() {
      await query(url, emptyAllTables)
      emptied.push(database)
    },
  }
  return database
}

/** The address of the server, as soon as it has the template. */
async function preparedServer(): Promise<string> {
  server ??= (async () => {
    const admin = process.env['POLYLOG_TEST_POSTGRES'] ?? (await startPostgresServer()).url
    await makeTemplate(admin)
    return admin
  })()
  return await server
}

/** Made by the first process that needs it; the others wait. */
async function makeTemplate(admin: string): Promise<void> {
  await connected(admin, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [templateLock])
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [templateName])
    if (found.rowCount !== 0) return
    // Renamed when it is complete, so that a process that is killed meanwhile leaves no half template.
    const name = `unfinished_${randomBytes(6).toString('hex')}`
    await client.query(`CREATE DATABASE ${name}`)
    const url = urlOf(admin, name)
    await (await openPostgresStore({ url, clock: systemClock })).close()
    // An opened store leaves rows of its own, which an image brings along.
    await query(url, emptyAllTables)
    await query(url, testClock)
    await client.query(`ALTER DATABASE ${name} RENAME TO ${templateName}`)
  })
}

function urlOf(admin: string, database: string): string {
  const url = new URL(admin)
  url.pathname = `/${database}`
  return url.href
}

/** `DELETE` takes a twentieth of the time of `TRUNCATE`, because tests write few rows. */
const emptyAllTables = `
  SET session_replication_role = replica;
  DO $$ DECLARE name TEXT; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('migrations', 'database_starts')
    LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
    FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'
    LOOP EXECUTE format('ALTER SEQUENCE %I RESTART', name); END LOOP;
  END $$`

/** All rows of a database and the state of its sequences. */
export type DatabaseRows = { tables: Record<string, string>; sequences: Record<string, string> }

const isTable = `relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
  AND relname NOT IN ('migrations', 'test_time', 'database_starts')`

/** As one transaction sees them. */
export async function readAllRows(url: string): Promise<DatabaseRows> {
  return await connected(url, async (client) => {
    const tables = await client.query<{ relname: string }>(`SELECT relname FROM pg_class WHERE ${isTable}`)
    const parts = tables.rows.map(
      ({ relname }) =>
        `SELECT '${relname}' AS name, (SELECT jsonb_agg(to_jsonb(t)) FROM ${relname} AS t)::text AS rows`,
    )
    const rows = await client.query<{ name: string; rows: string | null }>(parts.join(' UNION ALL '))
    // Read after the rows: a sequence may be ahead of them, but never behind.
    const sequences = await client.query<{ name: string; last: string | null }>(
      `SELECT sequencename AS name, last_value::text AS last FROM pg_sequences WHERE schemaname = 'public'`,
    )
    return {
      tables: Object.fromEntries(rows.rows.flatMap((row) => (row.rows === null ? [] : [[row.name, row.rows]]))),
      sequences: Object.fromEntries(sequences.rows.flatMap(({ name, last }) => (last === null ? [] : [[name, last]]))),
    }
  })
}

/** Writes the rows into an empty database. */
export async function writeAllRows(url: string, { tables, sequences }: DatabaseRows): Promise<void> {
  const runs = JSON.parse(tables['runs'] ?? '[]') as { id: string }[]
  const pool = openPool({ url })
  await new JournalPartitions(pool).cover(runs.map(({ id }) => id))
  await pool.end()
  await connected(url, async (client) => {
    await client.query('SET session_replication_role = replica')
    for (const [name, rows] of Object.entries(tables)) {
      await client.query(
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::${name}, $1::jsonb)`,
        [rows],
      )
    }
    for (const [name, last] of Object.entries(sequences)) await client.query('SELECT setval($1, $2)', [name, last])
  })
}

/** One connection, one query; `?` for the parameters. */
export async function query(url: string, sql: string, ...values: unknown[]): Promise<Record<string, unknown>[]> {
  let count = 0
  const text = values.length === 0 ? sql : sql.replace(/\?/g, () => `$${(count += 1)}`)
  return await connected(url, async (client) => {
    // Without values, the text may hold several statements.
    const result = await client.query<Record<string, unknown>>(text, values.length === 0 ? undefined : values)
    return result.rows
  })
}

async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // A connection that breaks between two queries must not end the process; the next query fails.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
