// Copies between SQLite and PostgreSQL: any rows, there and back; what a copy refuses, and what
// an unfinished or a wrong one looks like.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { copyAllData } from '../../src/app/copy-store.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { copiedTables, tablesLeftOut } from '../../src/stores/copy-tables.ts'
import { openPostgresSource, openPostgresTarget } from '../../src/stores/postgres/copy-end.ts'
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { openSqliteSource, openSqliteTarget } from '../../src/stores/sqlite/copy-end.ts'
import { migrate } from '../../src/stores/sqlite/migrate.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { type CopyTarget, copyStore } from '../../src/stores/store-copy.ts'
import { newStoreDatabase, query } from '../support/postgres.ts'
import { randomFrom } from '../support/random.ts'
import { onlyOnSqlite } from '../support/test-database.ts'
import { fillWithAnything } from './arbitrary-rows.ts'

const skip = onlyOnSqlite('these tests use both databases')
const seed = Number(process.env['POLYLOG_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

type Scene = { url: string; file(name: string): string }

async function scene(body: (scene: Scene) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-copy-'))
  const { url, drop } = await newStoreDatabase()
  try {
    await body({ url, file: (name) => join(folder, name) })
  } finally {
    await drop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function filledFile(file: string, chosen: number): void {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL')
  migrate(db)
  fillWithAnything(db, randomFrom(chosen))
  db.close()
}

/** Everything that a server reads, without the code of the copy. */
function contents(file: string): Record<string, unknown> {
  const db = new DatabaseSync(file, { readOnly: true })
  const found: Record<string, unknown> = {}
  for (const { name } of copiedTables) {
    if (name === 'journal') continue
    const without = { runs: ['last_seq'], file_contents: ['put_at'], file_chunks: ['id'] }[name] ?? []
    const rows = db.prepare(`SELECT * FROM ${name}`).all()
    found[name] = rows
      .map((row) => JSON.stringify(Object.entries(row).filter(([column]) => !without.includes(column))))
      .toSorted()
  }
  const runs = db.prepare('SELECT id, last_seq FROM runs').all() as { id: string; last_seq: number }[]
  const bodies = db.prepare(
    `SELECT last_seq, body FROM journal WHERE run_id = ?1 UNION SELECT last_seq, body FROM journal_tail
     WHERE run_id = ?1 AND last_seq > coalesce((SELECT max(last_seq) FROM journal WHERE run_id = ?1), 0) ORDER BY last_seq`,
  )
  for (const { id, last_seq: lastSeq } of runs) {
    const rows = bodies.all(id) as { last_seq: number; body: string }[]
    const lines = rows.flatMap(({ body }) => body.split('\n'))
    found[`journal of ${id}`] = [Math.max(lastSeq, rows.at(-1)?.last_seq ?? 0), lines]
  }
  found['counts'] = db
    .prepare('SELECT * FROM run_counts WHERE count > 0 ORDER BY status')
    .all()
    .map((row) => ({ ...row }))
  found['sequences'] = db
    .prepare("SELECT name, seq FROM sqlite_sequence WHERE name <> 'feed' AND seq > 0 ORDER BY name")
    .all()
    .map((row) => ({ ...row }))
  const { sql } = db
    .prepare("SELECT group_concat(sql, ';') AS sql FROM (SELECT sql FROM sqlite_master ORDER BY name)")
    .get() as { sql: string }
  found['schema'] = sql
  db.close()
  return found
}

const warn = (sentence: string) => assert.fail(sentence)

describe('a copy', { skip }, () => {
  for (let round = 0; round < 6; round += 1) {
    test(`to PostgreSQL and back has equal contents (POLYLOG_TEST_SEED=${seed}, round ${round})`, () =>
      scene(async ({ url, file }) => {
        filledFile(file('a.db'), seed + round)

        const there = await copyAllData({ from: file('a.db'), to: url }, { warn })
        const back = await copyAllData({ from: url, to: file('b.db') }, { warn })

        assert.deepEqual([there.differences, back.differences], [[], []])
        assert.deepEqual(
          back.tables.map(({ table, target }) => [table, target]),
          there.tables.map(({ table, source }) => [table, source]),
        )
        assert.deepEqual(contents(file('b.db')), contents(file('a.db')))
        assert.equal(statSync(file('b.db')).mode & 0o077, 0, 'only its owner may read the file')
      }))
  }

  test('knows every table of both databases', () =>
    scene(async ({ url, file }) => {
      filledFile(file('a.db'), seed)
      const db = new DatabaseSync(file('a.db'))
      const sqlite = db
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
        .all()
        .map((row) => row.name as string)
      db.close()
      const postgres = await query(
        url,
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace",
      )
      const known = [...copiedTables.map(({ name }) => name), ...tablesLeftOut, 'test_time']
      const found = [...sqlite, ...postgres.map((row) => row['relname'] as string)]
      assert.deepEqual(
        found.filter((name) => !known.includes(name) && !/^(notes_text|sqlite_)/.test(name)),
        [],
      )
    }))

  test('is refused into a database with rows, into itself, from nothing, and from tables of another version', () =>
    scene(async ({ url, file }) => {
      filledFile(file('a.db'), 7)
      filledFile(file('b.db'), 8)
      const refused = (from: string, to: string, message: RegExp) =>
        assert.rejects(copyAllData({ from, to }, { warn }), { code: 'copy_refused', message })
      await refused(file('a.db'), file('b.db'), /b\.db has rows already\. Copy into an empty database\.$/)
      await refused(file('a.db'), file('a.db'), /are the same/)
      await refused(file('none.db'), url, /There is no database file/)
      const server = await openPostgresStore({ url, clock: systemClock })
      await refused(file('a.db'), url, /^A server uses postgres:\/\/[^@]+\. Stop it, then copy\.$/)
      await server.close()
      const db = new DatabaseSync(file('a.db'))
      db.exec('ALTER TABLE notes ADD COLUMN colour TEXT')
      db.close()
      await refused(file('a.db'), url, /The table notes differs .* Start this version of the server once/)
    }))

  test('of a file that a server writes to is one moment of it', () =>
    scene(async ({ url, file }) => {
      filledFile(file('a.db'), 9)
      const store = await openSqliteStore({ file: file('a.db'), clock: systemClock })
      const source = openSqliteSource(file('a.db'))
      await store.addNote({ id: 'late', owner: 'ada', text: 'after the copy began', createdAt: 1 })
      const target = await openPostgresTarget(url)
      const { differences } = await copyStore(source, target)
      await Promise.all([source.close(), target.close(), store.close()])

      assert.deepEqual(differences, [])
      assert.deepEqual(await query(url, "SELECT id FROM notes WHERE id = 'late'"), [])
    }))
})

describe('a copy that did not end', { skip }, () => {
  const failing = (target: CopyTarget): CopyTarget => ({
    ...target,
    insert: async (table, rows) => {
      if (table.name === 'messages') throw new Error('the power failed')
      await target.insert(table, rows)
    },
  })
  /** A seed with messages. */
  const chosen = 3

  test('leaves a target on which no server starts, and the next copy begins anew', () =>
    scene(async ({ url, file }) => {
      filledFile(file('a.db'), chosen)
      for (const open of [async () => await openPostgresTarget(url), async () => openSqliteTarget(file('b.db'))]) {
        const [source, target] = [openSqliteSource(file('a.db')), await open()]
        await assert.rejects(copyStore(source, failing(target)), /the power failed/)
        await Promise.all([source.close(), target.close()])
      }

      const refusal = { code: 'config_invalid', message: /is an unfinished copy\. Run polylog copy again/ }
      await assert.rejects(openPostgresStore({ url, clock: systemClock }), refusal)
      await assert.rejects(openSqliteStore({ file: file('b.db'), clock: systemClock }), refusal)
      await assert.rejects(openPostgresSource(url), refusal)

      await copyAllData({ from: file('a.db'), to: url }, { warn })
      await copyAllData({ from: url, to: file('b.db') }, { warn })
      assert.deepEqual(contents(file('b.db')), contents(file('a.db')))
      await (await openPostgresStore({ url, clock: systemClock })).close()
      await (await openSqliteStore({ file: file('b.db'), clock: systemClock })).close()
    }))

  test('because it differs names the journals, and is not released', () =>
    scene(async ({ url, file }) => {
      filledFile(file('a.db'), chosen)
      const [source, target] = [openSqliteSource(file('a.db')), await openPostgresTarget(url)]
      let changed: unknown
      const wrong: CopyTarget = {
        ...target,
        async insert(table, rows) {
          if (table.name !== 'journal') return await target.insert(table, rows)
          const [first, ...others] = rows
          changed ??= first?.['run_id']
          await target.insert(table, [{ ...first, body: `${first?.['body'] as string} ` }, ...others])
        },
      }
      const { differences } = await copyStore(source, wrong)
      await Promise.all([source.close(), target.close()])

      assert.deepEqual(differences, [{ table: 'journal', ids: [changed] }])
      await assert.rejects(openPostgresStore({ url, clock: systemClock }), { code: 'config_invalid' })
    }))
})
