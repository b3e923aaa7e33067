// The server inside of another program: several in one process, each with its own data, and the
// process itself is not changed. The package is imported by its name, as users do it.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import * as polylog from 'polylog'
import { createPolylog, defineTool, type FinishedRun, type PolylogConfig, type PolylogServer, z } from 'polylog'
import * as source from '../../src/index.ts'
import { stdioFake } from '../support/fake-mcp.ts'
import { openStream } from '../support/sse.ts'
import { callServer, until } from '../support/test-server.ts'

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-embedded-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

let servers = 0
function quiet(config: PolylogConfig = {}): PolylogConfig {
  servers += 1
  return { port: 0, data: join(folder, `data-${servers}`), log: 'silent', demoPaceMs: 0, ...config }
}

async function askFor(server: PolylogServer, input: string): Promise<string> {
  const stream = await openStream(`${server.url}/v1/agent/chat`, { method: 'POST', body: { userId: 'ada', input } })
  await stream.ended()
  return stream.text()
}

const greet = (greeting: string) =>
  defineTool({
    name: 'greet',
    description: 'Greets somebody.',
    input: z.object({ who: z.string() }),
    effect: 'read',
    execute: ({ who }, { userId }) => `${greeting}, ${who}, says ${userId}`,
  })

/** What a library must not change. */
function processState(): Record<string, unknown> {
  return {
    listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    symbols: Object.getOwnPropertySymbols(globalThis).map(String),
    globals: Object.getOwnPropertyNames(globalThis),
    cwd: process.cwd(),
    exitCode: process.exitCode,
  }
}

describe('createPolylog', () => {
  test('the package exports what the source does, and it is the same module', () => {
    assert.deepEqual(Object.keys(polylog).toSorted(), Object.keys(source).toSorted())
    assert.equal(polylog.defineTool, source.defineTool)
  })

  test('two servers live in one process, each with its own tools and data', async () => {
    const one = await createPolylog(quiet({ tools: [greet('Hello')] }))
    const two = await createPolylog(quiet({ tools: [greet('Good day')] }))
    try {
      assert.throws(() => one.url, /no URL before listen/)
      assert.equal(await one.listen(), one.url)
      await two.listen()
      assert.notEqual(one.url, two.url)

      const [first, second] = await Promise.all(
        [one, two].map((server) => askFor(server, 'use the tool greet with {"who": "Bo"}')),
      )

      assert.match(first ?? '', /Hello, Bo, says ada/)
      assert.match(second ?? '', /Good day, Bo, says ada/)
      await one.close()
      assert.match(await askFor(two, 'say still here'), /"status":"succeeded"/)
    } finally {
      await Promise.all([one.close(), two.close()])
    }
  })

  test('connects MCP servers of its configuration; a tool in code keeps a name that one of theirs has', async () => {
    const lookup = defineTool({
      name: 'lookup',
      description: 'x',
      input: z.object({}),
      effect: 'read',
      execute: () => 'ours',
    })
    const server = await createPolylog(quiet({ mcpServers: { shop: stdioFake() }, tools: [lookup] }))
    try {
      await server.listen()
      const { body } = await callServer(server.url, 'GET', '/v1/tools')
      const listed = (body as unknown as { name: string; source: string }[]).filter(({ name }) => /lookup/.test(name))
      assert.deepEqual(
        listed.map(({ name, source }) => [name, source]),
        [
          ['lookup', 'config'],
          ['shop_lookup', 'mcp:shop'],
        ],
      )
      assert.match(await askFor(server, 'use the tool lookup with {}'), /ours/)
    } finally {
      await server.close()
    }
  })

  test('leaves the process as it was, while it serves and after', async () => {
    const before = processState()
    const server = await createPolylog(quiet())
    await server.listen()
    const during = processState()
    await server.close()

    assert.deepEqual(during, before)
    assert.deepEqual(processState(), before)
  })

  test('reads no environment unless it is given one, which then wins', async () => {
    process.env['POLYLOG_DEMO_PACE_MS'] = 'not a number'
    try {
      await (await createPolylog(quiet())).close()
      await assert.rejects(
        createPolylog(quiet(), { environment: process.env }),
        /POLYLOG_DEMO_PACE_MS is "not a number"/,
      )
    } finally {
      delete process.env['POLYLOG_DEMO_PACE_MS']
    }
    const other = join(folder, 'from-the-environment')
    const server = await createPolylog(quiet(), { environment: { POLYLOG_DATA: other } })
    await server.close()
    assert.ok(existsSync(join(other, 'polylog.db')))
  })

  test('a wrong configuration rejects with every problem, and leaves nothing behind', async () => {
    const config = quiet()
    const wrong = { ...config, prot: 1, tools: [{ name: 'x y' }] } as unknown as PolylogConfig
    await assert.rejects(createPolylog(wrong), {
      code: 'config_invalid',
      message: /prot is not a setting; did you mean port\?/,
    })
    const badTool = { ...config, tools: [{ name: 'x y' }] } as unknown as PolylogConfig
    await assert.rejects(createPolylog(badTool), { code: 'config_invalid', message: /The tool "x y" needs a name/ })

    const server = await createPolylog(config)
    await server.close()
  })

  test('a data folder that another server of the process uses is refused', async () => {
    const config = quiet()
    const server = await createPolylog(config)
    try {
      await assert.rejects(createPolylog(config), {
        code: 'config_invalid',
        message: /Another server uses the data folder/,
      })
    } finally {
      await server.close()
    }
    await (await createPolylog(config)).close()
  })

  test('a port that is taken rejects listen, and closes everything', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const config = quiet({ port })
    const server = await createPolylog(config)
    await assert.rejects(server.listen(), { code: 'config_invalid', message: /is in use/ })
    await new Promise((resolve) => other.close(resolve))

    const again = await createPolylog(config)
    assert.equal(await again.listen(), `http://127.0.0.1:${port}`)
    await again.close()
  })

  test('a hook is called for each run, and close waits for one that is under way', async () => {
    const ended: FinishedRun[] = []
    let finish = () => {}
    let isDone = false
    const server = await createPolylog(
      quiet({
        hooks: {
          async onRunEnded(run) {
            ended.push(run)
            await new Promise<void>((resolve) => (finish = resolve))
            isDone = true
          },
        },
      }),
    )
    await server.listen()
    await askFor(server, 'say one')
    await until('the hook', () => ended[0])
    const health = await callServer(server.url, 'GET', '/v1/health')
    const closed = server.close()
    finish()
    await closed

    assert.equal(health.status, 200)
    assert.equal(ended[0]?.status, 'succeeded')
    assert.ok(ended[0].endedAt instanceof Date)
    assert.equal(isDone, true)
  })
})
