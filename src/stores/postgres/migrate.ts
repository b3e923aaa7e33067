// Migrates a database to the version of this code. Applies the numbered files in migrations/,
// each in one transaction together with the row that records it. Several servers may start at
// once: a lock lets one of them migrate, and the others find the work done.

import { readdirSync, readFileSync } from 'node:fs'
import type { Pool, PoolClient } from 'pg'
import { AppError } from '../../errors/app-error.ts'

const folder = new URL('./migrations/', import.meta.url)

/** Any number that no other program uses for an advisory lock in the same database. */
const migrationLock = 7_081_994_001

type Migration = { number: number; name: string; sql: string }

export function readMigrations(): Migration[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 4)), name, sql: readFileSync(new URL(name, folder), 'utf8') }))
}

/** Resolves with the names of the migrations that it applied. */
export async function migrate(pool: Pool, migrations: readonly Migration[] = readMigrations()): Promise<string[]> {
  const client = await pool.connect()
  try {
    // Another node may migrate for longer than any query of the store takes, and so may this one.
    await client.query('SET statement_timeout = 0')
    await client.query('SELECT pg_advisory_lock($1)', [migrationLock])
    try {
      await client.query('CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)')
      const missing = await missingMigrations(client, migrations)
      for (const { number, name, sql } of missing) {
        await client.query('BEGIN')
        try {
          await client.query(sql)
          await client.query('INSERT INTO migrations (number, name) VALUES ($1, $2)', [number, name])
          await client.query('COMMIT')
        } catch (error) {
          await client.query('ROLLBACK')
          throw error
        }
      }
      return missing.map(({ name }) => name)
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [migrationLock])
      await client.query('RESET statement_timeout')
    }
  } finally {
    client.release()
  }
}

/** The names of the migrations that `migrate` would apply. Changes nothing. */
export async function pendingMigrations(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ found: boolean }>("SELECT to_regclass('migrations') IS NOT NULL AS found")
  const missing = rows[0]?.found === true ? await missingMigrations(pool, readMigrations()) : readMigrations()
  return missing.map(({ name }) => name)
}

async function missingMigrations(
  client: Pick<PoolClient | Pool, 'query'>,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const { rows } = await client.query<{ number: number }>('SELECT number FROM migrations')
  const applied = new Set(rows.map(({ number }) => number))
  const newest = migrations.at(-1)?.number ?? 0
  const highest = Math.max(0, ...applied)
  if (highest > newest) {
    throw new AppError(
      'config_invalid',
      `The database was written by a newer version of this server (its tables are at ${highest}, this version knows ${newest}). Start the newer version, or use another database.`,
      { details: { database: highest, code: newest } },
    )
  }
  return migrations.filter(({ number }) => !applied.has(number))
}
