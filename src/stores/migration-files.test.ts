// Two files with one number would mean that the second is never applied.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMigrations as postgresMigrations } from './postgres/migrate.ts'
import { readMigrations as sqliteMigrations } from './sqlite/migrate.ts'

test('the migrations of each database are numbered from 1, without gaps and repetitions', () => {
  for (const migrations of [sqliteMigrations(), postgresMigrations()]) {
    assert.deepEqual(
      migrations.map(({ number }) => number),
      migrations.map((_, index) => index + 1),
    )
  }
})
