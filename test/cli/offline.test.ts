// backup, restore and doctor, as processes: on the data of a server that works, of one that is stopped, and of none.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../client/src/client.ts'
import { polylog } from '../support/command-line.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startPolylog } from '../support/polylog.ts'
import { onlyOnSqlite } from '../support/test-database.ts'

let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-offline-'))
})

after(() => rmSync(folder, { recursive: true, force: true }))

const at = (name: string) => join(folder, name)
const on = (data: string, ...args: string[]) => polylog(args, { environment: { POLYLOG_DATA: data }, cwd: folder })

const fileOnly = onlyOnSqlite('backups are files, and the doctor looks at them')

describe('polylog backup and restore', { skip: fileOnly }, () => {
  test('copies the database while runs are written, and the copy is served elsewhere with what was complete', async () => {
    const server = await startPolylog({ POLYLOG_DEMO_PACE_MS: '1' }, at('busy'))
    const client = createClient({ baseUrl: server.baseUrl, userId: 'ada' })
    const done = await client.chat({ input: 'count to 20' })
    const whole = await done.result()
    const busy = await Promise.all(Array.from({ length: 8 }, () => client.chat({ input: 'count to 2000' })))
    const backup = await on(at('busy'), 'backup', at('copy.db'), '--json')
    assert.equal(backup.code, 0, backup.stderr)
    const facts = JSON.parse(backup.stdout) as { file: string; runs: number; conversations: number }
    assert.deepEqual([facts.file, facts.runs, facts.conversations], [at('copy.db'), 9, 9])
    assert.equal(statSync(at('copy.db')).mode & 0o777, 0o600)
    assert.equal(existsSync(at('copy.db.partial')), false)
    for (const run of busy) await client.cancel(run.id)
    await server.stop()

    const restored = await on(at('elsewhere'), 'restore', at('copy.db'))
    assert.deepEqual([restored.code, restored.stdout], [0, `${at('elsewhere')}: 9 conversations, 9 runs restored.\n`])
    const second = await startPolylog({ POLYLOG_DEMO_PACE_MS: '0' }, at('elsewhere'))
    try {
      const there = createClient({ baseUrl: second.baseUrl, userId: 'ada' })
      assert.deepEqual(await there.attach(done.id).result(), whole)
      // The runs that were cut by the copy go on here as after a crash.
      assert.match((await there.attach(busy[0]?.id ?? '').result()).output ?? '', / 1999 2000$/)
    } finally {
      await second.stop()
    }
  })

  test('does not replace a file without --force', async () => {
    writeFileSync(at('taken.db'), 'mine')
    const refused = await on(at('busy'), 'backup', at('taken.db'))
    assert.deepEqual([refused.code, readFileSync(at('taken.db'), 'utf8')], [1, 'mine'])
    assert.match(refused.stderr, /taken\.db exists; name another file, or use --force/)
    assert.equal((await on(at('busy'), 'backup', at('taken.db'), '--force')).code, 0)
    assert.equal((await on(at('nowhere'), 'backup')).code, 1)
    const astray = await on(at('busy'), 'backup', at('no-folder/copy.db'))
    assert.equal(astray.code, 1)
    assert.match(astray.stderr, /copy\.db cannot be written: there is no such folder; name another file\.\n$/)
  })

  test('restore refuses a folder in use, an existing database without --force, and keeps what it replaces', async () => {
    const server = await startPolylog({}, at('used'))
    const inUse = await on(at('used'), 'restore', at('copy.db'), '--force')
    await server.stop()
    assert.equal(inUse.code, 1)
    assert.match(inUse.stderr, /Another server uses the data folder/)

    const existing = await on(at('used'), 'restore', at('copy.db'))
    assert.match(existing.stderr, /exists\. Use --force to replace it/)
    const forced = await on(at('used'), 'restore', at('copy.db'), '--force', '--json')
    const { replaced, runs } = JSON.parse(forced.stdout) as { replaced: string; runs: number }
    assert.equal(runs, 9)
    assert.equal(existsSync(replaced), true)
  })

  test('restore refuses a damaged file, a foreign one, and one of a newer version, and changes nothing', async () => {
    writeFileSync(at('text.db'), 'this is not a database, but long enough to be read as one '.repeat(100))
    const text = await on(at('fresh'), 'restore', at('text.db'))
    assert.equal(text.code, 5)
    assert.ok(
      text.stderr.startsWith(`polylog: ${at('text.db')} is damaged, or it is not a SQLite file. Nothing was changed`),
    )

    const damaged = at('damaged.db')
    assert.equal((await on(at('busy'), 'backup', damaged)).code, 0)
    truncateSync(damaged, Math.floor(statSync(damaged).size / 2 / 4096) * 4096)
    const cut = await on(at('fresh'), 'restore', damaged)
    assert.equal(cut.code, 5)
    assert.match(cut.stderr, /damaged/)

    const foreign = new DatabaseSync(at('foreign.db'))
    foreign.exec('CREATE TABLE things (id TEXT)')
    foreign.close()
    assert.match((await on(at('fresh'), 'restore', at('foreign.db'))).stderr, /not one of this server/)

    assert.equal((await on(at('busy'), 'backup', at('newer.db'))).code, 0)
    const newer = new DatabaseSync(at('newer.db'))
    newer.exec("INSERT INTO migrations VALUES (9000, 'of the future')")
    newer.close()
    assert.match((await on(at('fresh'), 'restore', at('newer.db'))).stderr, /written by a newer version/)
    assert.equal((await on(at('fresh'), 'restore', at('missing.db'))).code, 1)
    assert.equal(existsSync(join(at('fresh'), 'polylog.db')), false)
  })

  test('with PostgreSQL they name the command of PostgreSQL, without the password', async () => {
    const environment = { POLYLOG_DATA: at('pg'), POLYLOG_DATABASE_URL: 'postgres://ada:secret@db.example.com/agents' }
    const { code, stderr } = await polylog(['backup'], { environment })
    assert.equal(code, 1)
    assert.match(stderr, /pg_dump --format=custom --file=polylog\.dump "postgres:\/\/db\.example\.com\/agents"/)
    assert.doesNotMatch(stderr, /secret/)
  })
})

describe('polylog doctor', { skip: fileOnly }, () => {
  type Check = { name: string; status: string; sentence: string }
  const checksOf = (stdout: string) =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Check)

  test('is content with a machine that has nothing yet, and with the data of a server', async () => {
    const empty = await on(at('empty'), 'doctor', '--json')
    assert.equal(empty.code, 0, empty.stderr)
    assert.deepEqual(
      checksOf(empty.stdout).map(({ name, status }) => `${name} ${status}`),
      ['settings ok', 'data folder ok', 'database ok', 'providers warn'],
    )
    assert.equal(existsSync(at('empty')), false, 'the doctor changes nothing')
    const used = await on(at('busy'), 'doctor', '--deep')
    assert.equal(used.code, 0, used.stderr)
    assert.match(used.stdout, /✔ database: 9 conversations, 9 runs .*all migrations are applied/)
    assert.match(used.stdout, /✔ database: Every page of the file was read/)
    assert.match(used.stdout, /No server uses it now/)
  })

  test('a wrong setting, a damaged file and a database that does not answer fail with exit code 5', async () => {
    const wrong = await polylog(['doctor', '--json'], { environment: { POLYLOG_AUHT: 'open' } })
    assert.equal(wrong.code, 5)
    assert.match(checksOf(wrong.stdout)[0]?.sentence ?? '', /did you mean POLYLOG_AUTH/)

    const data = at('broken')
    assert.equal((await on(data, 'restore', at('copy.db'))).code, 0)
    const file = join(data, 'polylog.db')
    const bytes = readFileSync(file)
    bytes.fill(7, bytes.length / 2, bytes.length / 2 + 20_000)
    writeFileSync(file, bytes)
    assert.equal((await on(data, 'doctor', '--deep')).code, 5)

    const environment = { POLYLOG_DATA: data, POLYLOG_DATABASE_URL: 'postgres://ada:secret@127.0.0.1:1/x' }
    const unreachable = await polylog(['doctor'], { environment })
    assert.equal(unreachable.code, 5)
    assert.match(unreachable.stdout, /✖ database: The database does not answer/)
    assert.doesNotMatch(unreachable.stdout + unreachable.stderr, /secret/)
  })

  test('--providers asks for one token, and says what the provider said', async () => {
    const provider = await startFakeProvider()
    const environment = {
      POLYLOG_DATA: at('p'),
      OPENAI_API_KEY: 'key',
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API: 'chat',
    }
    try {
      await provider.script([[{ text: 'ok' }, { finish: 'stop' }]])
      const good = await polylog(['doctor', '--providers'], { environment })
      assert.equal(good.code, 0, good.stdout + good.stderr)
      assert.match(good.stdout, /✔ providers: openai\/\S+ answered after \d+ ms/)
      assert.equal((await provider.requests()).length, 1)

      await provider.script([[{ status: 401 }]])
      const bad = await polylog(['doctor', '--providers'], { environment })
      assert.equal(bad.code, 5)
      assert.match(bad.stdout, /✖ providers: openai\/\S+ does not answer: /)
    } finally {
      await provider.stop()
    }
  })

  test('--url checks a running server and its streams', async () => {
    const server = await startPolylog()
    try {
      const { code, stdout } = await polylog(['doctor', '--url', server.baseUrl, '--frames', '5', '--interval', '40'])
      assert.equal(code, 0)
      assert.match(stdout, /✔ server: http:\S+ answers, version \d/)
      assert.match(stdout, /✔ stream: 5 frames came one by one/)
    } finally {
      await server.dispose()
    }
    assert.equal((await polylog(['doctor', '--url', server.baseUrl])).code, 4)
  })
})
