// Connections to PostgreSQL: a pool, queries with `?` for parameters, and transactions that are
// repeated if the database asks for it. Text is encoded on the way in and decoded on the way
// out, because PostgreSQL cannot store the character U+0000.

import { type Pool as PoolType, type PoolClient, type QueryResult, Pool, types } from 'pg'
import { isRetryable } from './postgres-errors.ts'
import { fromTextColumn, toTextColumn } from './text-column.ts'

export type Value = string | number | null | Uint8Array | readonly string[] | readonly number[]
export type Row = Record<string, string | number | null>

/** What a query runs on: the pool, or the connection of a transaction. */
export interface Db {
  all(sql: string, ...values: Value[]): Promise<Row[]>
  get(sql: string, ...values: Value[]): Promise<Row | undefined>
  /** Returns how many rows were changed. */
  run(sql: string, ...values: Value[]): Promise<number>
}

/** BIGINT and the sums of it arrive as text by default. All our numbers are below 2^53. */
const parseNumber = (text: string) => Number(text)
for (const type of [types.builtins.INT8, types.builtins.NUMERIC]) types.setTypeParser(type, parseNumber)

/** `$1, $2 …` for each `?`, and a name under which a connection prepares the text once. The texts come from a small fixed set. */
const prepared = new Map<string, { text: string; name: string }>()

function prepare(sql: string): { text: string; name: string } {
  let known = prepared.get(sql)
  if (known === undefined) {
    let count = 0
    known = { text: sql.replace(/\?/g, () => `$${(count += 1)}`), name: `polylog_${prepared.size}` }
    prepared.set(sql, known)
  }
  return known
}

type Client = Pick<PoolClient, 'query'> | Pick<PoolType, 'query'>

export function dbOf(client: Client): Db {
  async function query(sql: string, values: readonly Value[]): Promise<QueryResult<Row>> {
    return await client.query<Row>({ ...prepare(sql), values: values.map(encodeValue) })
  }
  return {
    all: async (sql, ...values) => (await query(sql, values)).rows.map(decodeRow),
    async get(sql, ...values) {
      const [row] = (await query(sql, values)).rows
      return row === undefined ? undefined : decodeRow(row)
    },
    run: async (sql, ...values) => (await query(sql, values)).rowCount ?? 0,
  }
}

function encodeValue(value: Value): unknown {
  if (typeof value === 'string') return toTextColumn(value)
  return Array.isArray(value) ? value.map((each) => (typeof each === 'string' ? toTextColumn(each) : each)) : value
}

function decodeRow(row: Row): Row {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string') row[name] = fromTextColumn(value)
  }
  return row
}

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database` */
  url: string
  /** The most connections at the same time. */
  connectionsMax?: number
  /** Called for connections that fail while nobody uses them. */
  onError?: (error: unknown) => void
}

/** Each open transaction needs one. Few are enough, because a transaction takes milliseconds. */
const connectionsMaxDefault = 16

/** A statement that takes longer waits for a lock that nobody gives up, or for a database that is not there. */
const statementTimeoutMs = 30_000

/** A node that freezes inside a transaction must not keep its locks: the database ends its connection after this time. */
const idleTransactionMs = 10_000

/**
 * Less than the time above. Otherwise the transactions of a frozen node that wait for one lock would get it one after the
 * other, and each would keep it for that time. A node that is not frozen tries again.
 */
const lockTimeoutMs = 8_000

const begin = `BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs}`
const beginVolatile = `${begin}; SET LOCAL synchronous_commit = off`

export function openPool({ url, connectionsMax = connectionsMaxDefault, onError }: PostgresOptions): PoolType {
  const pool = new Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleTransactionMs,
    application_name: 'polylog',
  })
  // Without listeners a connection that breaks would end the process: the first is for idle ones, the second for those in use.
  pool.on('error', onError ?? (() => {}))
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** Deadlocks and conflicts are rare, and the second attempt finds the rows as the first winner left them. */
const attemptsMax = 5

/**
 * Runs `work` in a transaction. `durable: false`: a crash of the database server may lose the commit, but never break
 * the order of commits.
 */
export async function transaction<T>(pool: PoolType, durable: boolean, work: (db: Db) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const client = await pool.connect()
    let broken: Error | undefined
    try {
      await client.query(durable ? begin : beginVolatile)
      const result = await work(dbOf(client))
      await client.query('COMMIT')
      return result
    } catch (error) {
      try {
        await client.query('ROLLBACK')
      } catch (failure) {
        broken = failure instanceof Error ? failure : new Error(String(failure))
      }
      if (attempt >= attemptsMax || broken !== undefined || !isRetryable(error)) throw error
    } finally {
      client.release(broken)
    }
  }
}
