// Tools of MCP servers that are child processes.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { effectsFile, stdioFake } from '../../test/support/fake-mcp.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import { until } from '../../test/support/until.ts'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { systemClock } from '../kit/clock.ts'
import { connectMcpServers, type McpOptions, type McpServers } from './mcp.ts'
import type { McpServerConfig } from './mcp-config.ts'
import { createToolRegistry } from './tool-registry.ts'
import type { Tool, ToolRegistry } from './tool.ts'

const effects = effectsFile()
const silent = { info() {}, warn() {} }
const secrets = { PATH: process.env.PATH, HOME: '/fake', OPENAI_API_KEY: 'sk-secret', SHELF: 'top' }
process.env.POLYLOG_TEST_SECRET = 'do-not-tell'

let shop: McpServers
let registry: ToolRegistry
const get = (name: string): Tool => registry.get(name)!

function connect(mcpServers: Record<string, McpServerConfig>, options: Partial<McpOptions> = {}) {
  return connectMcpServers({ mcpServers }, { clock: systemClock, log: silent, environment: secrets, ...options })
}

const processId = async () => (await get('process_id').run({}, toolContext())).output

before(async () => {
  shop = await connect({ shop: stdioFake({ FAKE_MCP_FILE: effects.file, SHELF_NAME: '${SHELF} shelf' }) })
  registry = createToolRegistry(shop.entries, { close: shop.close })
})
after(async () => {
  await registry.close()
  effects.remove()
})

test('all pages of the list are read, and each tool says where it comes from', () => {
  const listings = registry.list()

  assert.deepEqual(
    listings.map(({ name }) => name),
    [
      'lookup',
      'add_item',
      'charge',
      'broken',
      'slow',
      'environment',
      'parts',
      'process_id',
      'odd_name__',
      'bad_schema',
    ],
  )
  assert.ok(listings.every(({ source }) => source === 'mcp:shop'))
})

test('what a tool says about itself decides its effect, and silence means unsafe', () => {
  const classes = Object.fromEntries(registry.available().map(({ name, effect, confirm }) => [name, [effect, confirm]]))

  assert.deepEqual(classes.lookup, ['read', 'never'])
  assert.deepEqual(classes.add_item, ['idempotent', 'always'])
  assert.deepEqual(classes.charge, ['unsafe', 'always'])
  assert.deepEqual(classes.broken, ['unsafe', 'always'])
})

test('a schema that cannot be compiled makes its tool unavailable, with the reason', () => {
  const listing = registry.list().find(({ name }) => name === 'bad_schema')

  assert.equal(listing?.available, false)
  assert.match(listing.reason!, /input schema cannot be used/)
})

test('arguments are checked by the rules of the draft that the schema names', () => {
  assert.equal(registry.check(get('lookup'), { word: '' }), 'word: must NOT have fewer than 1 characters')
  assert.equal(registry.check(get('lookup'), { word: 'x', when: 'soon' }), 'when: must match format "date"')
  assert.equal(registry.check(get('charge'), { amount: 0 }), 'amount: must be >= 1')
  assert.equal(registry.check(get('charge'), { amount: 2 }), null)
})

test('a structured answer is kept, without the text that only repeats it', async () => {
  const result = await get('lookup').run({ word: 'tea' }, toolContext())

  assert.deepEqual(result, {
    ok: true,
    output: { structuredContent: { meaning: 'about tea' } },
    summary: '{"meaning":"about tea"}',
  })
})

test('text parts are joined and other parts are described', async () => {
  const result = await get('parts').run({}, toolContext())

  assert.deepEqual(result.output, {
    text: 'first\n[image/png, 5 B]\n[link: a file, file:///a]\n[resource: file:///b]\ninside',
    structuredContent: { count: 4 },
  })
})

test('an answer that reports an error is a no', async () => {
  const result = await get('broken').run({}, toolContext())

  assert.deepEqual(result, { ok: false, output: 'the shelf is empty', summary: 'the shelf is empty' })
})

test('a tool is called by its own name, whatever it is called here', async () => {
  const result = await get('odd_name__').run({}, toolContext())

  assert.equal(result.output, 'found under its own name')
})

test('an answer that does not fit the output schema does not turn a charge that was made into an error', async () => {
  const result = await get('charge').run({ amount: 7 }, toolContext())

  assert.deepEqual(result, { ok: true, output: 'charged 7', summary: 'charged 7' })
  assert.deepEqual(
    effects.lines().filter((line) => line === 'charge 7'),
    ['charge 7'],
  )
})

test('the key of the call goes along', async () => {
  await get('add_item').run({ text: 'x' }, toolContext({ idempotencyKey: 'key_add' }))

  assert.ok(effects.lines().includes('add_item key_add'))
})

test('a call is described with its arguments', () => {
  assert.equal(
    get('charge').describe({ amount: 5, note: 'x' }),
    'Use “Charge a card” of shop with amount: 5, note: “x”',
  )
  assert.equal(get('charge').describe(null), 'Use “Charge a card” of shop')
})

test('a child process gets its own variables and nothing of ours', async () => {
  const result = await get('environment').run({}, toolContext())
  const environment = JSON.parse(result.output as string) as Record<string, string>

  assert.equal(environment.SHELF_NAME, 'top shelf')
  assert.equal(environment.HOME, '/fake')
  assert.doesNotMatch(result.output as string, /sk-secret|do-not-tell/)
})

test('progress is passed on, and an abort cancels the call on the other side', async () => {
  const stop = new AbortController()
  const reason = new AppError('run_cancelled', 'The run was cancelled.')
  const progress: string[] = []
  const pid = await processId()

  const call = get('slow').run(
    {},
    toolContext({
      signal: stop.signal,
      progress(message) {
        progress.push(message)
        stop.abort(reason)
      },
    }),
  )

  await assert.rejects(call, (error) => error === reason)
  assert.deepEqual(progress, ['halfway'])
  // The same process answers the next call, and only after it has read the cancellation: messages keep their order.
  assert.equal(await processId(), pid)
  assert.ok(effects.lines().includes('slow cancelled'))
})

test('a call that was cancelled before it began is not sent', async () => {
  const earlier = effects.lines()

  await assert.rejects(get('charge').run({ amount: 1 }, toolContext({ signal: AbortSignal.abort() })), {
    code: 'tool_cancelled',
  })
  await get('lookup').run({ word: 'x' }, toolContext())
  assert.deepEqual(effects.lines(), earlier)
})

test('a call without an answer ends at the limit', async () => {
  const clock = manualClock()
  const servers = await connect({ shop: stdioFake() }, { clock })
  const slow = createToolRegistry(servers.entries).get('slow')!
  let halfway = () => {}
  const started = new Promise<void>((resolve) => (halfway = resolve))

  const outcome = assert.rejects(slow.run({}, toolContext({ progress: halfway })), {
    code: 'tool_timed_out',
    details: { outcome: 'unknown' },
  })
  await started
  await clock.advance(60_000)

  await outcome
  await servers.close()
})

test('a call that a server dies of is made once, its outcome is unknown, and the next call starts the server again', async () => {
  const dying = get('charge').run({ amount: 99, die: true }, toolContext())
  await assert.rejects(dying, { code: 'tool_failed', details: { outcome: 'unknown' } })

  const result = await get('charge').run({ amount: 98 }, toolContext())

  assert.equal(result.ok, true)
  assert.deepEqual(
    effects.lines().filter((line) => /charge 9[89]/.test(line)),
    ['charge 99', 'charge 98'],
  )
})

test('a server that dies and cannot be started again is unavailable, and nothing was sent', async () => {
  const config = stdioFake()
  const servers = await connect({ shop: config })
  const tools = createToolRegistry(servers.entries)
  config.command = 'no-such-program'

  await assert.rejects(tools.get('charge')!.run({ amount: 1, die: true }, toolContext()), { code: 'tool_failed' })
  await assert.rejects(tools.get('lookup')!.run({ word: 'x' }, toolContext()), {
    code: 'tool_unavailable',
    message: /Nothing was sent\. .*no-such-program/,
  })
  await servers.close()
})

test('after closing, calls are refused', async () => {
  const servers = await connect({ shop: stdioFake() })
  await servers.close()

  const { run } = createToolRegistry(servers.entries).get('lookup')!
  await assert.rejects(run({ word: 'x' }, toolContext()), { code: 'tool_unavailable' })
})

test('a server that only speaks the newest protocol is understood', async () => {
  const servers = await connect({ shop: stdioFake({ FAKE_MCP_MODE: 'modern' }) })
  const result = await createToolRegistry(servers.entries).get('lookup')!.run({ word: 'tea' }, toolContext())

  assert.equal(result.ok, true)
  await servers.close()
})

test('servers that cannot be had are listed with their reasons, and the others work', async () => {
  const clock = manualClock()
  // Time stands still until every server has answered, except for the one that hangs.
  let others = 3
  let heard = () => {}
  const allButOne = new Promise<void>((resolve) => (heard = resolve))
  const count = () => void ((others -= 1) === 0 && heard())

  const connecting = connect(
    {
      hangs: stdioFake({ FAKE_MCP_MODE: 'hang' }),
      fails: stdioFake({ FAKE_MCP_MODE: 'fail' }),
      absent: { command: 'no-such-program' },
      needs: stdioFake({ KEY: '${NOT_SET}' }),
      off: { ...stdioFake(), disabled: true },
      old: { url: 'http://127.0.0.1:1/sse', type: 'sse' },
      works: stdioFake(),
    },
    { clock, log: { info: count, warn: count } },
  )
  await allButOne
  await clock.advance(10_000)
  const servers = await connecting

  const listings = createToolRegistry(servers.entries).list()
  const reasons = Object.fromEntries(
    listings.filter(({ available }) => !available).map(({ source, reason }) => [source, reason]),
  )

  assert.equal(reasons['mcp:hangs'], 'It did not answer within 10 s.')
  assert.match(reasons['mcp:fails']!, /closed/i)
  assert.match(reasons['mcp:absent']!, /no-such-program/)
  assert.equal(reasons['mcp:needs'], 'The environment variable NOT_SET is not set.')
  assert.equal(reasons['mcp:off'], 'It is disabled in the configuration.')
  assert.match(reasons['mcp:old']!, /"sse" is not supported/)
  assert.ok(listings.some(({ source, available }) => source === 'mcp:works' && available))
  await servers.close()
})

test('tools of the same name from two servers get different names', async () => {
  const servers = await connect({ a: stdioFake({ SIDE: 'left' }), b: stdioFake({ SIDE: 'right' }) })
  const tools = createToolRegistry(servers.entries)

  assert.equal(tools.get('environment'), undefined)
  assert.match((await tools.get('a_environment')!.run({}, toolContext())).output as string, /"SIDE":"left"/)
  assert.match((await tools.get('b_environment')!.run({}, toolContext())).output as string, /"SIDE":"right"/)
  await servers.close()
})

test('a server that is not there at the start is tried again: its tools appear, and who waits for them goes on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-late-'))
  const file = join(folder, 'late.ts')
  const clock = manualClock()
  const late = await connect({ late: { ...stdioFake(), args: [file] } }, { clock })
  const registry = createToolRegistry(late.entries, { close: late.close, awaitSource: late.awaitSource })
  late.onChange((entries) => registry.replace(entries))
  try {
    assert.equal(registry.get('lookup'), undefined)
    let known = false
    const waiting = registry.awaitSource('mcp:late', new AbortController().signal).then(() => (known = true))
    await registry.awaitSource('mcp:unknown', new AbortController().signal)
    const fake = new URL('../../test/fakes/mcp-stdio-server.ts', import.meta.url)
    writeFileSync(file, `import ${JSON.stringify(fake.href)}\n`)
    assert.equal(known, false)

    await clock.advance(1000)
    await waiting

    assert.equal(registry.get('lookup')?.effect, 'read')
    assert.equal(registry.find('lookup', 'mcp:late')?.source, 'mcp:late')
    assert.equal(registry.find('lookup', 'mcp:other'), undefined, 'a name does not move to another server')
    assert.equal(registry.find('late_lookup', 'mcp:late')?.name, 'lookup')
  } finally {
    await registry.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a server that is slower than the start-up is not started again, and its tools appear', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-slow-'))
  const file = join(folder, 'slow.ts')
  const fake = new URL('../../test/fakes/mcp-stdio-server.ts', import.meta.url)
  // Answers when `go` exists, and leaves a line in `starts`.
  writeFileSync(
    file,
    `import { appendFileSync, existsSync } from 'node:fs'
    appendFileSync(${JSON.stringify(join(folder, 'starts'))}, 'started\\n')
    while (!existsSync(${JSON.stringify(join(folder, 'go'))})) await new Promise((resolve) => setTimeout(resolve, 10))
    await import(${JSON.stringify(fake.href)})\n`,
  )
  const clock = manualClock()
  const connecting = connect({ slow: { ...stdioFake(), args: [file] } }, { clock })
  await until('the start of the server', () => existsSync(join(folder, 'starts')))
  await clock.advance(10_000)
  const slow = await connecting
  const registry = createToolRegistry(slow.entries, { close: slow.close, awaitSource: slow.awaitSource })
  slow.onChange((entries) => registry.replace(entries))
  try {
    assert.equal(registry.list()[0]?.reason, 'It did not answer within 10 s.')
    writeFileSync(join(folder, 'go'), '')

    await registry.awaitSource('mcp:slow', new AbortController().signal)

    assert.equal((await registry.get('lookup')!.run({ word: 'tea' }, toolContext())).ok, true)
    assert.equal(readFileSync(join(folder, 'starts'), 'utf8'), 'started\n')
  } finally {
    await registry.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the tools of a server are those that it lists now, after a notification and after a restart', async () => {
  const changing = await connect({ changing: stdioFake() })
  const registry = createToolRegistry(changing.entries, { close: changing.close })
  changing.onChange((entries) => registry.replace(entries))
  const run = async (name: string, input: JsonValue) => registry.get(name)!.run(input, toolContext())
  try {
    assert.equal(registry.get('added'), undefined)

    await run('add_item', { text: 'a tool' })
    await until('the added tool', () => registry.get('added') !== undefined)
    assert.equal((await run('added', {})).output, 'called the added tool')

    // The next process has the list that it began with.
    await assert.rejects(run('charge', { amount: 1, die: true }))
    assert.equal((await run('lookup', { word: 'tea' })).ok, true)
    assert.equal(registry.get('added'), undefined)
  } finally {
    await registry.close()
  }
})

test('closing does not wait for a server that is still being connected', async () => {
  const clock = manualClock()
  const connecting = connect({ hangs: stdioFake({ FAKE_MCP_MODE: 'hang' }) }, { clock })
  await clock.advance(10_000)
  const hanging = await connecting

  await hanging.close()

  assert.equal(hanging.entries.length, 1)
})

test('a call of a tool that no server listed does not wait for a server that is down', async () => {
  const clock = manualClock()
  const down = await connect({ down: { ...stdioFake(), args: ['/no/such/file.ts'] } }, { clock })
  const hanging = connect({ hangs: stdioFake({ FAKE_MCP_MODE: 'hang' }) }, { clock })
  await clock.advance(10_000)
  const slow = await hanging
  try {
    await down.awaitSource(undefined, new AbortController().signal)

    let isKnown = false
    const waiting = slow.awaitSource(undefined, new AbortController().signal).then(() => (isKnown = true))
    await clock.advance(10_000)
    assert.equal(isKnown, false, 'its first attempt is under way')
    await clock.advance(20_000)
    await waiting
  } finally {
    await Promise.all([down.close(), slow.close()])
  }
})

test('waiting for a server has a time limit, and ends when the run is stopped', async () => {
  const clock = manualClock()
  const gone = await connect({ gone: { ...stdioFake(), args: ['/no/such/file.ts'] } }, { clock })
  try {
    const stop = new AbortController()
    const stopped = gone.awaitSource('mcp:gone', stop.signal)
    stop.abort()
    await stopped
    const overdue = gone.awaitSource('mcp:gone', new AbortController().signal)
    await clock.advance(30_000)
    await overdue
  } finally {
    await gone.close()
  }
})
