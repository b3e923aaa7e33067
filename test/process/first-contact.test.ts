// Mistakes at the first start of the server: one sentence that says what to do, exit code 1, no
// stack trace. And what the log says if everything is right.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { closedAddress } from '../support/closed-port.ts'
import { callServer, until } from '../support/test-server.ts'
import { onlyOnSqlite, onPostgres } from '../support/test-database.ts'
import { startPolylog } from '../support/polylog.ts'
import { startPolylogProcess, startAndFail, compileCache } from '../support/polylog-process.ts'

const main = new URL('../../src/app/main.ts', import.meta.url).pathname

let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-first-'))
})

after(() => rmSync(folder, { recursive: true, force: true }))

const settings = (environment: Record<string, string>) => ({
  PATH: process.env.PATH ?? '',
  PORT: '0',
  ...compileCache(),
  ...environment,
})

/** Starts the server and waits for its end, which must come by itself. */
function failingStart(environment: Record<string, string>): Promise<{ code: number | null; said: string }> {
  return startAndFail(settings({ POLYLOG_DATA: join(folder, 'data'), ...environment }))
}

async function assertOneSentence(environment: Record<string, string>, sentence: RegExp): Promise<void> {
  const { code, said } = await failingStart(environment)
  assert.equal(code, 1, said)
  assert.match(said, sentence)
  assert.match(said, /^Polylog cannot start\. /)
  assert.doesNotMatch(said, /^\s+at |\.ts:\d/m, 'no stack')
}

describe('a start that cannot work says in a sentence what to do', () => {
  test('the port is taken: the port and the setting are named, and the data folder is free again', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    try {
      await assertOneSentence(
        { PORT: String(port) },
        new RegExp(`Port ${port} of 127\\.0\\.0\\.1 is in use: .*set PORT to another port`),
      )
    } finally {
      await new Promise((resolve) => other.close(resolve))
    }
    const next = await startPolylog({ PORT: String(port) }, join(folder, 'data'))
    assert.equal(await next.stop(), 0)
  })

  test('the address is not one of this machine', async () => {
    await assertOneSentence(
      { HOST: '192.0.2.1', POLYLOG_AUTH: 'open' },
      /HOST is 192\.0\.2\.1, which is not an address of this machine/,
    )
  })

  test('the data folder is a file, lies below one, or cannot be made', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    await assertOneSentence({ POLYLOG_DATA: file }, /is a file; set POLYLOG_DATA to a folder/)
    await assertOneSentence({ POLYLOG_DATA: join(file, 'below') }, /cannot be used: .*set POLYLOG_DATA/)
    await assertOneSentence({ POLYLOG_DATA: '/proc/polylog' }, /cannot be used: .*set POLYLOG_DATA/)
  })

  test('another server has the data folder', { skip: onlyOnSqlite('servers on PostgreSQL may share it') }, async () => {
    const first = await startPolylog()
    try {
      await assertOneSentence(
        { POLYLOG_DATA: first.dataDir },
        /Another server uses the data folder .*Stop it, or set POLYLOG_DATA to another folder/,
      )
    } finally {
      await first.dispose()
    }
  })

  test('a setting has a value that there is not, or is misspelt', async () => {
    await assertOneSentence({ POLYLOG_AUTH: 'maybe' }, /POLYLOG_AUTH is "maybe"; it must be one of open, required/)
    await assertOneSentence({ PORT: '70000' }, /PORT is "70000"; it must be a whole number from 0 to 65535/)
    await assertOneSentence({ POLYLOG_AUHT: 'required' }, /POLYLOG_AUHT is not a setting; did you mean POLYLOG_AUTH\?/)
  })

  test('a file that a setting names is missing: nothing is left behind', async () => {
    const data = join(folder, 'mcp')
    await assertOneSentence(
      { POLYLOG_DATA: data, POLYLOG_MCP_CONFIG: join(folder, 'nowhere.json') },
      /POLYLOG_MCP_CONFIG/,
    )
    const next = await startPolylog({}, data)
    assert.equal(await next.stop(), 0)
  })
})

describe('a signal during the start', () => {
  test('stops the server in order, with exit code 0, and leaves the data folder free', async () => {
    const data = join(folder, 'signalled')
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const child = spawn(process.execPath, [main], {
        env: settings({ POLYLOG_DATA: data }),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let said = ''
      child.stdout.on('data', (part: Buffer) => {
        // The first line comes before the store is opened.
        if (said === '') child.kill(signal)
        said += part.toString()
      })
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve))

      assert.equal(code, 0, said)
      assert.match(said, /stopping: [^]*stopped/)
    }
    const next = await startPolylog({}, data)
    assert.equal(await next.stop(), 0)
  })
})

describe('a start that works', () => {
  test('says in its log which model answers and who may use it', async () => {
    const open = await startPolylogProcess({ POLYLOG_MODEL: 'demo/demo' })
    const required = await startPolylogProcess({
      POLYLOG_AUTH: 'required',
      POLYLOG_JWT_SECRET: 'long enough',
      OPENAI_API_KEY: 'k',
      POLYLOG_MODEL: 'openai/some-model',
    })
    try {
      assert.match(open.log(), /serves at http:[^"]*model demo\/demo, open to everybody who can reach it/)
      assert.match(required.log(), /serves at http:[^"]*model openai\/some-model, a login is required/)
    } finally {
      await open.dispose()
      await required.dispose()
    }
  })

  test('goes on if its log cannot be written any more: its reader is gone, or its disk is full', async () => {
    const unwritable = join(folder, 'log')
    writeFileSync(unwritable, '')
    for (const [what, stdout] of [
      ['a reader that is gone', 'pipe'],
      ['a file', openSync(unwritable, 'r')],
    ] as const) {
      const baseUrl = await closedAddress()
      const child = spawn(process.execPath, [main], {
        env: settings({ POLYLOG_DATA: join(folder, 'unlogged'), PORT: new URL(baseUrl).port, POLYLOG_LOG: 'debug' }),
        stdio: ['ignore', stdout, 'inherit'],
      })
      child.stdout?.destroy()
      const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
      const refused = await until('an answer', async () => {
        assert.equal(child.exitCode, null, what)
        return await callServer(baseUrl, 'POST', '/v1/agent/chat', { body: {} }).catch(() => undefined)
      })
      const health = await callServer(baseUrl, 'GET', '/v1/health')
      child.kill('SIGTERM')

      assert.deepEqual([refused.status, health.status, await closed], [400, 200, 0], what)
    }
  })

  test('keeps everything that it stores from other users of the machine, whatever the umask is', async () => {
    const umask = process.umask(0)
    const data = join(folder, 'modes', 'data')
    const server = await startPolylogProcess({}, data).finally(() => process.umask(umask))
    try {
      await callServer(server.baseUrl, 'POST', '/v1/agent/chat', { body: { input: 'hello' } })
      await callServer(server.baseUrl, 'POST', '/api/chat/stream', {
        body: { message: 'use tool fs_write {"path":"note.txt","content":"hello"}' },
      })
      const mode = (name: string) => (statSync(join(data, name)).mode & 0o777).toString(8)

      assert.deepEqual([mode('.'), mode('workspace')], ['700', '700'])
      const files = ['polylog.db', 'polylog.db-wal', 'polylog.db-shm', 'polylog.db.lock']
      for (const name of onPostgres ? [] : files) assert.equal(mode(name), '600', name)
    } finally {
      await server.dispose()
    }
  })
})
