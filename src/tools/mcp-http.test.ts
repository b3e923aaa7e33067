// Tools of MCP servers that are reached over streamable HTTP: the newest protocol,
// and the older one with sessions.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test, type TestContext } from 'node:test'
import { closedAddress } from '../../test/support/closed-port.ts'
import { effectsFile } from '../../test/support/fake-mcp.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { type FakeProcess, spawnFake } from '../../test/support/spawn-fake.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import { until } from '../../test/support/until.ts'
import { AppError } from '../errors/app-error.ts'
import { withActivity } from '../kit/activity.ts'
import { systemClock } from '../kit/clock.ts'
import { connectMcpServers, type McpOptions } from './mcp.ts'
import { createToolRegistry } from './tool-registry.ts'

const effects = effectsFile()
after(() => effects.remove())

const start = (mode: string, extra: Record<string, string> = {}, port = 0) =>
  spawnFake('mcp-http-server.ts', { environment: { FAKE_MCP_MODE: mode, FAKE_MCP_FILE: effects.file, ...extra }, port })

async function connect(
  t: TestContext,
  fake: FakeProcess | string,
  headers: Record<string, string> = {},
  options: Partial<McpOptions> = {},
) {
  const url = `${typeof fake === 'string' ? fake : fake.baseUrl}/mcp`
  const servers = await connectMcpServers(
    { mcpServers: { shop: { url, headers } } },
    { clock: systemClock, log: { info() {}, warn() {} }, environment: { SHOP_TOKEN: 'abc' }, ...options },
  )
  const registry = createToolRegistry(servers.entries, { close: servers.close })
  servers.onChange((entries) => registry.replace(entries))
  t.after(() => registry.close())
  return { registry, get: (name: string) => registry.get(name)! }
}

const charges = (amount: number) => effects.lines().filter((line) => line === `charge ${amount}`).length

for (const mode of ['modern', 'sessions']) {
  test(`${mode}: tools are listed and called`, async (t) => {
    const fake = await start(mode)
    t.after(fake.stop)
    const { registry, get } = await connect(t, fake)

    assert.equal(registry.list().length, 10)
    assert.deepEqual((await get('lookup').run({ word: 'tea' }, toolContext())).output, {
      structuredContent: { meaning: 'about tea' },
    })
    assert.equal((await get('broken').run({}, toolContext())).ok, false)
  })

  test(`${mode}: a tool that the server adds later is offered as soon as the server says so`, async (t) => {
    const fake = await start(mode)
    t.after(fake.stop)
    const { registry, get } = await connect(t, fake)
    assert.equal(registry.get('added'), undefined)

    // The server may not know yet that we listen, so it is told to announce the tool until we know it.
    const added = await until('the added tool', async () => {
      await get('add_item').run({ text: 'a tool' }, toolContext())
      return registry.get('added')
    })

    assert.equal((await added.run({}, toolContext())).output, 'called the added tool')
  })

  test(`${mode}: an abort cancels the call on the other side`, async (t) => {
    const fake = await start(mode)
    t.after(fake.stop)
    const { get } = await connect(t, fake)
    const stop = new AbortController()
    const reason = new AppError('run_cancelled', 'The run was cancelled.')
    const earlier = effects.lines().length

    const call = get('slow').run({}, toolContext({ signal: stop.signal, progress: () => stop.abort(reason) }))

    await assert.rejects(call, (error) => error === reason)
    // Over HTTP nothing orders the cancellation before the next call, so it is waited for.
    while (effects.lines().length === earlier) await get('lookup').run({ word: 'x' }, toolContext())
    assert.equal(effects.lines().at(-1), 'slow cancelled')
  })

  test(`${mode}: a call that the server dies of is made once and known as unknown at once, and a new server is used by the next`, async (t) => {
    const fake = await start(mode)
    const { get } = await connect(t, fake)
    const amount = mode === 'modern' ? 501 : 502

    await assert.rejects(get('charge').run({ amount, die: true }, toolContext()), {
      code: 'tool_failed',
      details: { outcome: 'unknown' },
    })
    assert.equal(charges(amount), 1)

    await assert.rejects(get('charge').run({ amount }, toolContext()), {
      code: 'tool_unavailable',
      message: /Nothing was sent/,
    })
    assert.equal(charges(amount), 1)

    const again = await start(mode, {}, Number(new URL(fake.baseUrl).port))
    t.after(again.stop)
    assert.equal((await get('charge').run({ amount }, toolContext())).ok, true)
    assert.equal(charges(amount), 2)
  })
}

for (const mode of ['modern', 'sessions']) {
  test(`${mode}: an answer that is cut off is an unknown outcome at once, not a wait for the limit`, async (t) => {
    const fake = await start(mode)
    const { get } = await connect(t, fake)

    const call = get('slow').run({}, toolContext({ progress: () => void fake.kill() }))

    await assert.rejects(call, { code: 'tool_failed', details: { outcome: 'unknown' } })
  })

  test(`${mode}: a call that is refused leaves the others alone`, async (t) => {
    const fake = await start(mode)
    t.after(fake.stop)
    const { get } = await connect(t, fake)
    const stop = new AbortController()
    let halfway = () => {}
    const started = new Promise<void>((resolve) => (halfway = resolve))
    const slow = get('slow').run({}, toolContext({ signal: stop.signal, progress: halfway }))
    const outcome = assert.rejects(slow, { code: 'tool_cancelled' })
    await started

    await fetch(`${fake.baseUrl}/_control/refuse`)
    await assert.rejects(get('lookup').run({ word: 'x' }, toolContext()), { code: 'tool_unavailable', message: /429/ })
    assert.equal((await get('lookup').run({ word: 'x' }, toolContext())).ok, true)

    stop.abort() // still under way: its own cancellation is what ends it
    await outcome
  })
}

test('a session that the server has forgotten is opened again, and the refused call is made once', async (t) => {
  const fake = await start('sessions')
  t.after(fake.stop)
  const { get } = await connect(t, fake)
  await fetch(`${fake.baseUrl}/_control/forget-sessions`)

  const result = await get('charge').run({ amount: 601 }, toolContext())

  assert.equal(result.ok, true)
  assert.equal(charges(601), 1)
})

test('closing ends the session on the server', async (t) => {
  const fake = await start('sessions')
  t.after(fake.stop)
  const { registry } = await connect(t, fake)
  const sessions = async () => (await fetch(`${fake.baseUrl}/_control/sessions`)).text()
  assert.equal(await sessions(), '1')

  await registry.close()

  assert.equal(await sessions(), '0')
})

test('headers are sent with their variables filled in', async (t) => {
  const fake = await start('modern', { FAKE_MCP_TOKEN: 'abc' })
  t.after(fake.stop)

  const { get } = await connect(t, fake, { authorization: 'Bearer ${SHOP_TOKEN}' })
  assert.equal((await get('lookup').run({ word: 'tea' }, toolContext())).ok, true)

  const refused = await connect(t, fake, { authorization: 'Bearer wrong' })
  assert.match(refused.registry.list()[0]!.reason!, /401/)
})

test('a server that is not there, and one that never answers, are listed with the reason', async (t) => {
  const absent = await connect(t, await closedAddress())
  assert.match(absent.registry.list()[0]!.reason!, /ECONNREFUSED/)

  let asked = () => {}
  const request = new Promise<void>((resolve) => (asked = resolve))
  const silent = createServer(() => asked()).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  t.after(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const clock = manualClock()
  const connecting = connect(t, `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, {}, { clock })
  await request
  await clock.advance(10_000)

  assert.equal((await connecting).registry.list()[0]!.reason, 'It did not answer within 10 s.')
})

test('the trace context of a call goes with its request, and with no other', async (t) => {
  const fake = await start('modern')
  t.after(fake.stop)
  const { get } = await connect(t, fake)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

  await get('lookup').run({ word: 'tea' }, toolContext())
  await withActivity({ run: 'r1', place: 'tool lookup', traceparent }, () =>
    get('lookup').run({ word: 'tea' }, toolContext({ traceparent })),
  )

  const seen = (await (await fetch(`${fake.baseUrl}/_control/traceparents`)).json()) as (string | null)[]
  assert.deepEqual(
    seen.filter((one) => one !== null),
    [traceparent],
  )
})

test('a connection that a call opens is shared, so it does not have the trace context of that call', async (t) => {
  const fake = await start('sessions')
  t.after(fake.stop)
  const { get } = await connect(t, fake)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await fetch(`${fake.baseUrl}/_control/forget-sessions`)

  await withActivity({ run: 'r1', place: 'tool lookup', traceparent }, () =>
    get('lookup').run({ word: 'tea' }, toolContext({ traceparent })),
  )

  const seen = (await (await fetch(`${fake.baseUrl}/_control/traceparents`)).json()) as (string | null)[]
  assert.deepEqual(
    seen.filter((one) => one !== null),
    [traceparent, traceparent],
    'the refused call, and the call in the new session',
  )
})
