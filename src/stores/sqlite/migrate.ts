// Migrates a database file to the version of this code. Applies the numbered files in
// migrations/, each in one transaction together with the row that records it. Running it
// again changes nothing. A database that is newer than the code is refused and not changed.

import { readdirSync, readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'

const folder = new URL('./migrations/', import.meta.url)

export type Migration = { number: number; name: string; sql: string }

export function readMigrations(): Migration[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}-.+\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 4)), name, sql: readFileSync(new URL(name, folder), 'utf8') }))
}

/** Returns the names of the migrations that it applied. */
export function migrate(db: DatabaseSync, migrations: readonly Migration[] = readMigrations()): string[] {
  db.exec('CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)')
  const missing = missingMigrations(db, migrations)
  for (const migration of missing) {
    db.exec('BEGIN IMMEDIATE')
    try {
      db.exec(migration.sql)
      db.prepare('INSERT INTO migrations (number, name) VALUES (?, ?)').run(migration.number, migration.name)
      db.exec('COMMIT')
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }
  return missing.map(({ name }) => name)
}

/** The names of the migrations that `migrate` would apply. Changes nothing. */
export function pendingMigrations(db: DatabaseSync): string[] {
  const hasTable = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").get() !== undefined
  const missing = hasTable ? missingMigrations(db, readMigrations()) : readMigrations()
  return missing.map(({ name }) => name)
}

function missingMigrations(db: DatabaseSync, migrations: readonly Migration[]): readonly Migration[] {
  const newest = migrations.at(-1)?.number ?? 0
  const rows = db.prepare('SELECT number FROM migrations').all()
  const applied = new Set(rows.map((row) => Number(row.number)))
  const highest = Math.max(0, ...applied)
  if (highest > newest) {
    throw new AppError(
      'config_invalid',
      `The database was written by a newer version of this server (its tables are at ${highest}, this version knows ${newest}). Start the newer version, or use another data folder.`,
      { details: { database: highest, code: newest } },
    )
  }
  return migrations.filter(({ number }) => !applied.has(number))
}
