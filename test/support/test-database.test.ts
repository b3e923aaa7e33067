// The databases of tests: which tests run on SQLite only, and that an image of a database on
// PostgreSQL holds what the database held.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { acceptInput, claimNow, owner, start } from '../contracts/store-fixtures.ts'
import { newStoreDatabase, query, readAllRows, writeAllRows } from './postgres.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts'

const root = join(import.meta.dirname, '..', '..')

test('the tests that are skipped on PostgreSQL are these', () => {
  const skipped: Record<string, string[]> = {}
  for (const file of globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).toSorted()) {
    const reasons = [...readFileSync(join(root, file), 'utf8').matchAll(/[^`]onlyOnSqlite\('([^']*)'\)/g)]
    if (reasons.length > 0) skipped[file] = reasons.map(([, reason]) => String(reason))
  }

  assert.deepEqual(skipped, {
    'test/cli/database.test.ts': ['the command looks at the file'],
    'test/cli/keys.test.ts': ['the command writes to the file'],
    'test/cli/offline.test.ts': ['backups are files, and the doctor looks at them'],
    'test/copy/copy.test.ts': ['these tests use both databases'],
    'test/copy/moving.test.ts': ['it moves between both databases'],
    'test/crash/full-disk.test.ts': ['it fills the disk of the file'],
    'test/crash/killed-while-applying.test.ts': ['it cuts the write-ahead log of the file'],
    'test/process/first-contact.test.ts': ['servers on PostgreSQL may share it'],
  })
})

test('an image of a PostgreSQL database has its rows, and ids go on after them', async (context) => {
  const first = await newStoreDatabase()
  const second = await newStoreDatabase()
  context.after(() => Promise.all([first.drop(), second.drop()]))
  const store = await openPostgresStore({ url: first.url, clock: systemClock })
  await store.accept(acceptInput('a', { claim: claimNow }))
  await store.close()

  await writeAllRows(second.url, await readAllRows(first.url))

  const image = await openPostgresStore({ url: second.url, clock: systemClock })
  await image.accept(acceptInput('b'))
  assert.deepEqual(
    (await image.listRuns({ owner, limit: 10 })).rows.map(({ id }) => id),
    ['b', 'a'],
  )
  assert.equal((await image.readEvents('a', 0, 10)).events.length, 1)
  await image.close()
})

test('an emptied database is like a new one, also its clock', async () => {
  const database = await newStoreDatabase()
  await query(database.url, `INSERT INTO test_time (now) VALUES (${start})`)
  const store = await openPostgresStore({ url: database.url, clock: systemClock })
  await store.accept(acceptInput('a'))
  await store.close()
  await database.drop()

  const again = await newStoreDatabase()
  assert.equal(again.url, database.url)
  const [row] = await query(again.url, 'SELECT (SELECT count(*) FROM runs) AS runs, polylog_now() <> ? AS goes', start)
  assert.deepEqual([Number(row?.['runs']), row?.['goes']], [0, true])
  await again.drop()
})
