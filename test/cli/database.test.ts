// migrate, and what doctor says about the database and the work in it, as processes, on both databases.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { readMigrations as postgresMigrations } from '../../src/stores/postgres/migrate.ts'
import { migrate, readMigrations } from '../../src/stores/sqlite/migrate.ts'
import { polylog } from '../support/command-line.ts'
import { startPolylog } from '../support/polylog.ts'
import { startPolylogProcess } from '../support/polylog-process.ts'
import { newStoreDatabase, query, type TestDatabase } from '../support/postgres.ts'
import { openStream } from '../support/sse.ts'
import { onlyOnSqlite } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const fileOnly = onlyOnSqlite('the command looks at the file')

let folder: string
let database: TestDatabase
const at = (name: string) => join(folder, name)

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-database-'))
  database = await newStoreDatabase()
})
after(async () => {
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

type Check = { name: string; status: string; sentence: string; details?: Record<string, unknown> }

async function doctor(environment: Record<string, string>): Promise<{ code: number | null; checks: Check[] }> {
  const { code, stdout } = await polylog(['doctor', '--json'], { environment })
  const lines = stdout.trim().split('\n')
  return { code, checks: lines.map((line) => JSON.parse(line) as Check) }
}

const find = (checks: readonly Check[], name: string, status?: string) =>
  checks.find((check) => check.name === name && (status === undefined || check.status === status))

describe('polylog migrate', () => {
  const names = readMigrations().map(({ name }) => name)

  test('--check names what is missing, ends with 5 and changes nothing', async () => {
    const environment = { POLYLOG_DATA: at('none') }
    const { code, stdout, stderr } = await polylog(['migrate', '--check', '--json'], { environment })

    assert.equal(code, 5)
    assert.deepEqual(JSON.parse(stdout), { database: join(at('none'), 'polylog.db'), applied: [], pending: names })
    assert.match(stderr, /"code":"migrations_missing"/)
    assert.equal(existsSync(at('none')), false)
  })

  test('several at once on an old file apply each migration once, and keep its rows', async () => {
    const data = at('old')
    const environment = { POLYLOG_DATA: data }
    // Creates the folder with the right permissions.
    assert.equal((await polylog(['migrate'], { environment })).code, 0)
    const file = join(data, 'polylog.db')
    for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true })
    const old = new DatabaseSync(file)
    migrate(old, readMigrations().slice(0, 3))
    old.exec("INSERT INTO conversations VALUES ('c', 'ada', NULL, 1, 1)")
    old.close()

    const all = await Promise.all([1, 2, 3].map(() => polylog(['migrate', '--json'], { environment })))
    assert.deepEqual(
      all.map(({ code }) => code),
      [0, 0, 0],
      all.map(({ stderr }) => stderr).join(''),
    )
    const applied = all.map(({ stdout }) => (JSON.parse(stdout) as { applied: string[] }).applied)
    assert.deepEqual(
      applied.filter((each) => each.length > 0),
      [names.slice(3)],
    )
    const now = new DatabaseSync(file)
    assert.equal(now.prepare('SELECT owner FROM conversations').get()?.['owner'], 'ada')
    now.close()
    assert.match((await polylog(['migrate', '--check'], { environment })).stdout, /all migrations are applied/)
  })

  test('on PostgreSQL it does the same, also while others do it', async () => {
    const all = postgresMigrations().map(({ name }) => name)
    const name = `migrate_${process.pid}`
    await query(database.url, `CREATE DATABASE ${name}`)
    const url = new URL(database.url)
    url.pathname = `/${name}`
    const environment = { POLYLOG_DATA: at('pg'), POLYLOG_DATABASE_URL: url.href }
    try {
      const missing = await polylog(['migrate', '--check', '--json'], { environment })
      assert.equal(missing.code, 5)
      assert.deepEqual((JSON.parse(missing.stdout) as { pending: string[] }).pending, all)
      const done = await Promise.all([1, 2, 3].map(() => polylog(['migrate', '--json'], { environment })))
      assert.deepEqual(
        done.map(({ code }) => code),
        [0, 0, 0],
        done.map(({ stderr }) => stderr).join(''),
      )
      const applied = done.map(({ stdout }) => (JSON.parse(stdout) as { applied: string[] }).applied)
      assert.deepEqual(
        applied.filter((each) => each.length > 0),
        [all],
      )
      await query(url.href, "INSERT INTO migrations (number, name) VALUES (9000, 'of the future')")
      const newer = await polylog(['migrate'], { environment })
      assert.equal(newer.code, 1)
      assert.match(newer.stderr, /written by a newer version/)
    } finally {
      await query(database.url, `DROP DATABASE ${name} WITH (FORCE)`)
    }
  })
})

describe('polylog doctor on the work of servers', () => {
  test('a server at work is found well: its node, its leases, and no stuck run', { skip: fileOnly }, async () => {
    const server = await startPolylog({ POLYLOG_NODE: 'one', POLYLOG_DEMO_PACE_MS: '50' }, at('busy'))
    try {
      const chat = await openStream(`${server.baseUrl}/v1/agent/chat`, {
        body: { input: 'count to 2000', userId: 'ada' },
      })
      await chat.waitFor(({ json }) => json.event === 'agent.delta')
      // Others see what the server has stored half a second later.
      const { code, checks } = await until('the database has the run', async () => {
        const found = await doctor({ POLYLOG_DATA: at('busy') })
        return find(found.checks, 'leases')?.details?.['leases'] === 1 && found
      })

      assert.equal(code, 0, JSON.stringify(checks))
      assert.match(find(checks, 'nodes')?.sentence ?? '', /^1 live: one \(\d+ runs\)\.$/)
      assert.match(find(checks, 'leases')?.sentence ?? '', /^1 runs have a lease, and all are renewed/)
      assert.equal(find(checks, 'stuck runs')?.sentence, 'None of 1 unfinished runs is stuck.')
      chat.leave()
    } finally {
      await server.stop()
    }
    const stopped = await doctor({ POLYLOG_DATA: at('busy') })
    assert.match(find(stopped.checks, 'nodes')?.sentence ?? '', /^No node works now; 1 runs go on at the next start\.$/)
  })

  test('on PostgreSQL it finds unsafe settings, a lease that nobody took over, and a cancel that nobody followed', async () => {
    const environment = { POLYLOG_DATA: at('pg-doctor'), POLYLOG_DATABASE_URL: database.url }
    await query(
      database.url,
      `INSERT INTO nodes (id, name, version, started_at, seen_at, lease_ms, offers, draining, capacity, running)
       VALUES ('n1', 'east', '1.0.0', 1, polylog_now(), 600000, '[]', 0, 8, 1), ('n2', 'west', '0.9.0', 1, polylog_now(), 600000, '[]', 1, 8, 0)`,
    )
    await query(
      database.url,
      `INSERT INTO runs (id, owner, family, agent_id, status, attempt, epoch, last_seq, created_at, lease_owner, lease_until, cancel_by, cancel_at, held)
       VALUES ('lost', 'ada', 'agent', 'a', 'running', 1, 1, 0, 1, 'n0', polylog_now() - 60000, NULL, NULL, 0),
         ('cancelled', 'ada', 'agent', 'a', 'waiting_user', 1, 1, 0, 1, NULL, NULL, 'ada', polylog_now() - 60000, 0)`,
    )
    const { code, checks } = await doctor(environment)

    assert.equal(code, 5)
    assert.match(find(checks, 'database')?.sentence ?? '', /all migrations are applied/)
    // The test database trades safety for speed.
    assert.match(find(checks, 'database settings', 'fail')?.sentence ?? '', /^fsync is off/)
    assert.equal(typeof (find(checks, 'lag')?.details?.['hintMs'] ?? null), 'number')
    assert.match(
      find(checks, 'nodes', 'warn')?.sentence ?? '',
      /different versions \(1\.0\.0, 0\.9\.0\).*west .*draining/,
    )
    assert.match(find(checks, 'leases', 'fail')?.sentence ?? '', /no node has taken them over: lost\.$/)
    assert.match(find(checks, 'stuck runs', 'fail')?.sentence ?? '', /cancelled more than 30 s ago: cancelled\.$/)
  })

  test('a server whose heartbeat has stopped is reported', { skip: fileOnly }, async () => {
    const server = await startPolylogProcess({}, at('frozen'))
    try {
      const file = new DatabaseSync(join(at('frozen'), 'polylog.db'))
      await until('the row of the node', () => file.prepare('SELECT 1 FROM nodes').get())
      process.kill(server.pid, 'SIGSTOP')
      file.exec('UPDATE nodes SET seen_at = 1')
      file.close()
      const { code, checks } = await doctor({ POLYLOG_DATA: at('frozen') })
      assert.equal(code, 5)
      assert.match(find(checks, 'nodes', 'fail')?.sentence ?? '', /heartbeat has stopped/)
    } finally {
      process.kill(server.pid, 'SIGCONT')
      await server.stop()
    }
  })
})
