// keys, as processes, beside servers that use the same database.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { polylog } from '../support/command-line.ts'
import { startPolylog, testSettings } from '../support/polylog.ts'
import { startAndFail } from '../support/polylog-process.ts'
import { newStoreDatabase, type TestDatabase } from '../support/postgres.ts'
import { callServer } from '../support/test-server.ts'
import { onlyOnSqlite } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const fileOnly = onlyOnSqlite('the command writes to the file')

let folder: string
let database: TestDatabase
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-keys-'))
  database = await newStoreDatabase()
})
after(async () => {
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})
const at = (name: string) => join(folder, name)

type KeyView = {
  id: string
  userId: string
  name: string | null
  key?: string
  revokedAtMs: number | null
  lastUsedAtMs: number | null
}

/** `polylog keys …` on a database; the JSON of its lines. */
async function keys(environment: Record<string, string>, ...args: string[]): Promise<KeyView[]> {
  const { code, stdout, stderr } = await polylog(['keys', ...args, '--json'], { environment })
  assert.equal(code, 0, stderr)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as KeyView)
}

const statusOf = async (baseUrl: string, headers: Record<string, string>) =>
  (await callServer(baseUrl, 'GET', '/v1/agent/runs', { headers })).status

describe('polylog keys', () => {
  test(
    'a server that requires logins does not start without anything to check them with, and a stored key is enough',
    { skip: fileOnly },
    async () => {
      const environment = { POLYLOG_DATA: at('first') }
      const refused = await startAndFail({
        ...testSettings({ POLYLOG_AUTH: 'required' }, at('first')),
        PATH: process.env['PATH'] ?? '',
      })
      assert.match(refused.said, /nothing to check a login with; make an API key \(polylog keys create <user>\)/)

      const doctor = () => polylog(['doctor'], { environment: { ...environment, POLYLOG_AUTH: 'required' } })
      const without = await doctor()
      assert.deepEqual([without.code, /✖ logins: .*polylog keys create/.test(without.stdout)], [5, true])

      const made = await polylog(['keys', 'create', 'ada', '--name', 'laptop'], { environment })
      assert.equal((await doctor()).code, 0)
      assert.equal(made.code, 0, made.stderr)
      const key = made.stdout.trim()
      assert.match(key, /^plk_[\w-]{43}$/)
      assert.match(made.stderr, /^key_\w+ for ada\. Keep the key: it is not shown again\.\n$/)
      const bytes = readFileSync(join(at('first'), 'polylog.db'), 'latin1')
      assert.equal(bytes.includes(key), false, 'only the hash is stored')

      const server = await startPolylog({ POLYLOG_AUTH: 'required' }, at('first'))
      try {
        assert.equal(await statusOf(server.baseUrl, {}), 401)
        assert.equal(await statusOf(server.baseUrl, { authorization: `Bearer ${key}` }), 200)
        assert.equal(await statusOf(server.baseUrl, { 'x-api-key': key }), 200)
        const chat = await callServer(server.baseUrl, 'POST', '/v1/agent/chat', {
          headers: { 'x-api-key': key },
          body: { input: 'hi', userId: 'bob', stream: false },
        })
        assert.equal(chat.status, 200)
        const used = await until('the last use of the key', async () =>
          (await keys(environment, 'list')).find(({ lastUsedAtMs }) => lastUsedAtMs !== null),
        )
        assert.deepEqual([used.userId, used.name], ['ada', 'laptop'])
        const shown = await polylog(['keys', 'list'], { environment })
        assert.match(shown.stdout, /^KEY +USER +NAME +CREATED +LAST USED +STATE\nkey_\w+ +ada +laptop .* valid\n$/)
        assert.equal(shown.stdout.includes(key), false)
      } finally {
        await server.stop()
      }
    },
  )

  test('a key works at once on every node, and every node refuses it after its revocation', async () => {
    const environment = { POLYLOG_DATA: at('nodes'), POLYLOG_DATABASE_URL: database.url }
    const settings = { POLYLOG_AUTH: 'required', POLYLOG_JWT_SECRET: 'secret', POLYLOG_DATABASE_URL: database.url }
    const nodes = [await startPolylog(settings, at('node-1')), await startPolylog(settings, at('node-2'))]
    try {
      const [made] = await keys(environment, 'create', 'ada', '--expires', '90d')
      const headers = { 'x-api-key': made?.key ?? '' }
      for (const { baseUrl } of nodes) assert.equal(await statusOf(baseUrl, headers), 200)
      const [revoked] = await keys(environment, 'revoke', made?.id ?? '')
      assert.notEqual(revoked?.revokedAtMs, null)
      for (const { baseUrl } of nodes) {
        await until('the refusal of a revoked key', async () => (await statusOf(baseUrl, headers)) === 401)
      }
    } finally {
      for (const node of nodes) await node.stop()
    }
  })

  test(
    'in open mode a stored key is a login, a wrong one is refused, and placeholders are still ignored',
    { skip: fileOnly },
    async () => {
      const server = await startPolylog({}, at('open'))
      try {
        const [made] = await keys({ POLYLOG_DATA: at('open') }, 'create', 'ada')
        const key = made?.key ?? ''
        assert.equal(await statusOf(server.baseUrl, { 'x-api-key': key }), 200)
        const wrong = `${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`
        assert.equal(await statusOf(server.baseUrl, { authorization: `Bearer ${wrong}` }), 401)
        assert.equal(await statusOf(server.baseUrl, { authorization: 'Bearer sk-placeholder' }), 200)
      } finally {
        await server.stop()
      }
    },
  )

  test('bad arguments are refused with exit codes of their own', async () => {
    const environment = { POLYLOG_DATA: at('bad') }
    const codeOf = async (...args: string[]) => (await polylog(['keys', ...args], { environment })).code
    assert.equal(await codeOf('create', ''), 2)
    assert.equal(await codeOf('create', ' '), 2)
    assert.equal(await codeOf('create', 'ada', '--name', 'x'.repeat(201)), 2)
    assert.equal(await codeOf('create', 'ada', '--expires', 'soon'), 2)
    assert.equal(await codeOf('create'), 2)
    assert.equal(await codeOf('revoke', 'key_none'), 3)
    assert.equal(await codeOf('lose'), 2)
    const { code, stderr } = await polylog(['keys'], { environment })
    assert.deepEqual([code, stderr], [2, 'polylog: Say what to do. Add --help for the list of commands.\n'])
  })
})
