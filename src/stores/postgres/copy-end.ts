// A PostgreSQL database as the source or the target of a copy. The source is read in one
// transaction (REPEATABLE READ) with cursors, so servers may go on writing.

import { Client, type Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import { copiedTables, type CopyRow, type CopyTable } from '../copy-tables.ts'
import type { CopySource, CopyTarget } from '../store-copy.ts'
import { openPool } from './connection.ts'
import { JournalPartitions } from './journal-partitions.ts'
import { migrate } from './migrate.ts'
import { toPostgresError } from './postgres-errors.ts'
import { fromTextColumn, toTextColumn } from './text-column.ts'

/** Rows of these tables may have a megabyte each. */
const rowsPerFetch = (table: string) => (['journal', 'file_chunks', 'blobs', 'messages'].includes(table) ? 16 : 500)

/** The reader of a file reads chunks of any size. */
const chunkBytes = 512 * 1024

/** Differs from that of servers. */
const applicationName = 'polylog copy'

/** Another session uses a table of the target. */
const lockTimeoutMs = 15_000

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: applicationName, lock_timeout: lockTimeoutMs })
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch (error) {
    throw toPostgresError(error)
  }
}

/** Without the password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

export async function openPostgresSource(url: string): Promise<CopySource> {
  const client = await connect(url)
  return await orEnd(client, async () => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const known = await client.query<{ known: boolean }>("SELECT to_regclass('unfinished_copies') IS NOT NULL AS known")
    if (known.rows[0]?.known !== true) {
      throw new AppError('copy_refused', `${nameOf(url)} has no tables of this server.`)
    }
    await refuseUnfinishedCopy(client)
    return { ...sourceOf(client, nameOf(url), 'given'), close: () => client.end() }
  })
}

/** Ends the connection if the work fails. */
async function orEnd<T>(client: Client, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await client.end()
    throw toPostgresError(error)
  }
}

/** Makes the tables if there are none. Throws `copy_refused` if a server uses the database. */
export async function openPostgresTarget(url: string): Promise<CopyTarget> {
  const client = await connect(url)
  const pool = openPool({ url, connectionsMax: 2 })
  await orEnd(client, async () => {
    const servers = await client.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'polylog' LIMIT 1`,
    )
    if (servers.rowCount !== 0) {
      throw new AppError('copy_refused', `A server uses ${nameOf(url)}. Stop it, then copy.`)
    }
    await migrate(pool).catch(async (error: unknown) => {
      await pool.end()
      throw error
    })
  })
  const partitions = new JournalPartitions(pool)
  const source = sourceOf(client, nameOf(url), 'own')
  const inTransaction = async (work: () => Promise<void>) => {
    await client.query('BEGIN')
    await work()
    await client.query('COMMIT')
  }
  const names = copiedTables.map(({ name }) => name)

  return {
    ...source,
    chunkBytes,
    async state() {
      if ((await client.query('SELECT 1 FROM unfinished_copies')).rowCount !== 0) return 'unfinished'
      for (const name of names) {
        if ((await client.query(`SELECT 1 FROM ${name} LIMIT 1`)).rowCount !== 0) return 'used'
      }
      return 'empty'
    },
    begin: () =>
      inTransaction(async () => {
        await client.query(`TRUNCATE ${[...names, 'run_counts', 'slots', 'feed', 'unfinished_copies'].join(', ')}`)
        await client.query('INSERT INTO unfinished_copies (started_at) VALUES (polylog_now())')
        // They would date conversations, count runs and fill the feed, as if everything happened now.
        for (const name of names) await client.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`)
      }),
    async insert({ name }, rows) {
      if (name === 'journal') await partitions.cover([...new Set(rows.map((row) => row['run_id'] as string))])
      const extra = name === 'usage_totals' ? { shard: 0 } : {}
      const columns = Object.keys({ ...rows[0], ...extra }).join(', ')
      await client.query(
        `INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE
         SELECT ${columns} FROM json_populate_recordset(NULL::${name}, $1)`,
        [JSON.stringify(rows.map((row) => ({ ...encoded(name, row), ...extra })))],
      )
    },
    finish: (highestNumbers) =>
      inTransaction(async () => {
        for (const name of names) {
          await client.query(`ALTER TABLE ${name} ENABLE TRIGGER USER`)
          for (const column of await identityColumns(client, name)) {
            await client.query(
              `SELECT setval(pg_get_serial_sequence('${name}', '${column}'), greatest(max(${column}), $1, 1),
                 max(${column}) IS NOT NULL OR $1::bigint > 0) FROM ${name}`,
              [highestNumbers[name] ?? 0],
            )
          }
        }
        await client.query(`
          SELECT setval('conversation_activity', greatest(max(activity), max(unnamed), 1)) FROM conversations;
          INSERT INTO run_counts (status, shard, count) SELECT status, 0, count(*) FROM runs GROUP BY status`)
      }),
    async release() {
      await client.query('DELETE FROM unfinished_copies')
      await client.query('ANALYZE')
    },
    async close() {
      await client.end()
      await pool.end()
    },
  }
}

/** `transaction`: whether the rows of a table are read in a transaction of their own, or in that of the connection. */
function sourceOf(client: Client, name: string, transaction: 'own' | 'given'): Omit<CopySource, 'close'> {
  let cursors = 0

  async function columnsOf({ name: table, without = [] }: CopyTable): Promise<string[]> {
    const { rows } = await client.query<{ name: string }>(
      `SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
      [table],
    )
    return rows.map((row) => row.name).filter((column) => !without.includes(column))
  }

  async function select(table: CopyTable): Promise<string> {
    const columns = await columnsOf(table)
    if (table.name === 'usage_totals') {
      const sums = columns.filter((column) => column !== 'day').map((column) => `sum(${column}) AS ${column}`)
      return `SELECT day, ${sums.join(', ')} FROM usage_totals GROUP BY day`
    }
    const order = table.pieces === undefined ? '' : `ORDER BY ${table.pieces.key}, ${table.pieces.order}`
    // Events of removed runs wait for their partition to be dropped.
    const where = table.name === 'journal' ? 'WHERE EXISTS (SELECT 1 FROM runs WHERE id = run_id)' : ''
    return `SELECT ${columns.join(', ')} FROM ${table.name} ${where} ${order}`
  }

  return {
    name,
    columns: columnsOf,
    async count({ name: table }) {
      const { rows } = await client.query<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)
      return rows[0]?.count ?? 0
    },
    async *rows(table) {
      cursors += 1
      const cursor = `copy_${cursors}`
      if (transaction === 'own') await client.query('BEGIN')
      await client.query(`DECLARE ${cursor} CURSOR FOR ${await select(table)}`)
      for (;;) {
        const { rows } = await client.query<CopyRow>(`FETCH ${rowsPerFetch(table.name)} FROM ${cursor}`)
        if (rows.length === 0) break
        for (const row of rows) yield decoded(table.name, row)
      }
      await client.query(`CLOSE ${cursor}`)
      if (transaction === 'own') await client.query('COMMIT')
    },
    async highestNumbers() {
      const numbers: Record<string, number> = {}
      for (const { name: table } of copiedTables) {
        for (const column of await identityColumns(client, table)) {
          const { rows } = await client.query<{ last: number | null }>(
            `SELECT pg_sequence_last_value(pg_get_serial_sequence('${table}', '${column}')::regclass) AS last`,
          )
          if (rows[0]?.last != null) numbers[table] = rows[0].last
        }
      }
      return numbers
    },
  }
}

async function identityColumns(client: Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attidentity <> ''`,
    [table],
  )
  return rows.map((row) => row.name)
}

function decoded(table: string, row: CopyRow): CopyRow {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string') row[name] = fromTextColumn(value)
  }
  if (table === 'runs' && row['needs'] != null) row['needs'] = JSON.stringify(row['needs'])
  return row
}

function encoded(table: string, row: CopyRow): Record<string, unknown> {
  const stored: Record<string, unknown> = {}
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string') stored[name] = toTextColumn(value)
    else if (value instanceof Uint8Array) stored[name] = `\\x${Buffer.from(value).toString('hex')}`
    else stored[name] = value
  }
  if (table === 'runs' && typeof row['needs'] === 'string') stored['needs'] = JSON.parse(row['needs'])
  return stored
}

/** Throws `config_invalid` if a copy into this database has not ended. */
export async function refuseUnfinishedCopy(client: Pick<Client, 'query'> | Pick<Pool, 'query'>): Promise<void> {
  if ((await client.query('SELECT 1 FROM unfinished_copies')).rowCount === 0) return
  throw new AppError(
    'config_invalid',
    'This database is an unfinished copy. Run polylog copy again with the same --from and --to; it begins anew.',
  )
}
