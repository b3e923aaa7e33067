// What is in a database, read without changing it: for `polylog doctor`.

import { Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import { readMigrations } from './migrate.ts'

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

const answerMs = 5_000

/** Throws `store_unavailable` if it does not answer. The sentence never contains the URL, which may contain a password. */
export async function inspectPostgres(url: string): Promise<PostgresFacts> {
  const pool = new Pool({ connectionString: url, max: 1, connectionTimeoutMillis: answerMs, query_timeout: answerMs })
  const number = async (sql: string) => {
    const { rows } = await pool.query<{ n: string | number | null }>(sql)
    return Number(rows[0]?.n ?? 0)
  }
  try {
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
  } catch (cause) {
    const reason =
      cause instanceof Error && cause.message !== '' ? cause.message : String((cause as { code?: unknown }).code)
    throw new AppError('store_unavailable', `The database does not answer: ${reason}.`, { cause })
  } finally {
    await pool.end().catch(() => {})
  }
}
