// MCP servers that answer with too much, or whose address holds a password.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { toolContext } from '../../test/support/tool-context.ts'
import { closedAddress } from '../../test/support/closed-port.ts'
import type { AppError } from '../errors/app-error.ts'
import { systemClock } from '../kit/clock.ts'
import { connectMcpServers } from './mcp.ts'
import { toToolResult } from './mcp-tools.ts'
import { createToolRegistry } from './tool-registry.ts'

type Request = { id?: number; method: string; params?: { cursor?: string } }
type Behaviour = {
  tools?: (cursor: string | undefined) => object
  result?: () => object
  stream?: boolean
  onRequest?: (incoming: IncomingMessage) => void
}

const tool = (name: string, more: object = {}) => ({
  name,
  inputSchema: { type: 'object' },
  annotations: { readOnlyHint: true },
  ...more,
})

/** Speaks just enough of the older protocol, and sends whatever a test wants. */
async function serve(t: TestContext, behaviour: Behaviour): Promise<URL> {
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing, behaviour))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, behaviour: Behaviour): Promise<void> {
  behaviour.onRequest?.(incoming)
  if (incoming.method !== 'POST') return void outgoing.writeHead(405).end()
  const pieces: Buffer[] = []
  for await (const piece of incoming) pieces.push(piece as Buffer)
  const { id, method, params } = JSON.parse(Buffer.concat(pieces).toString()) as Request
  if (id === undefined) return void outgoing.writeHead(202).end()
  const send = (message: object) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...message })
    outgoing.writeHead(200, { 'content-type': behaviour.stream ? 'text/event-stream' : 'application/json' })
    outgoing.end(behaviour.stream ? `event: message\ndata: ${text}\n\n` : text)
  }
  if (method === 'initialize') {
    send({
      result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
    })
  } else if (method === 'tools/list') send({ result: behaviour.tools?.(params?.cursor) ?? { tools: [tool('any')] } })
  else if (method === 'tools/call') send({ result: behaviour.result?.() ?? { content: [] } })
  else send({ error: { code: -32601, message: 'unknown' } })
}

async function connect(t: TestContext, url: URL | string) {
  const logged: string[] = []
  const note = (details: object, message: string) => {
    const { err, ...rest } = details as { err?: Error }
    logged.push(JSON.stringify([message, rest, err?.message, err?.stack, String(err?.cause)]))
  }
  const servers = await connectMcpServers(
    { mcpServers: { shop: { url: String(url) } } },
    { clock: systemClock, log: { info: note, warn: note }, environment: {} },
  )
  const registry = createToolRegistry(servers.entries, { close: servers.close })
  t.after(() => registry.close())
  return { registry, logged }
}

test('an answer that cannot be read is named as such, and the connection is kept', async (t) => {
  let connections = 0
  const url = await serve(t, {
    tools: () => ({ tools: [tool(`any${(connections += 1)}`)] }),
    result: () => ({ content: [{ type: 'image', mimeType: 'image/png', data: 'no base64!' }] }),
  })
  const { registry } = await connect(t, url)
  for (let call = 1; call <= 2; call += 1) {
    await assert.rejects(
      async () => registry.get('any1')?.run({}, toolContext()),
      ({ code, message, details }: AppError) => {
        assert.equal(code, 'tool_failed')
        assert.match(
          message,
          /^The answer of the MCP server shop cannot be read\. The call may have been carried out\./,
        )
        assert.equal(details?.['outcome'], 'unknown')
        return true
      },
    )
  }
  assert.equal(connections, 1)
})

const long = 'x'.repeat(11 * 1024 * 1024)

for (const stream of [false, true]) {
  const how = stream ? 'as a stream' : 'as one body'

  test(`an answer that is too long is an unknown outcome, not a full memory (${how})`, async (t) => {
    const { registry } = await connect(
      t,
      await serve(t, { stream, result: () => ({ content: [{ type: 'text', text: long }] }) }),
    )

    await assert.rejects(registry.get('any')!.run({}, toolContext()), {
      code: 'tool_failed',
      details: { outcome: 'unknown' },
    })
  })

  test(`a list of tools that is too long makes the server unavailable (${how})`, async (t) => {
    const { registry } = await connect(
      t,
      await serve(t, { stream, tools: () => ({ tools: [tool('any', { description: long })] }) }),
    )

    assert.deepEqual(registry.available(), [])
    assert.equal(registry.list()[0]?.available, false)
  })
}

test('of a list of tools without an end the first pages are used, and the listing says so', async (t) => {
  let pages = 0
  const { registry, logged } = await connect(
    t,
    await serve(t, {
      tools: () => {
        pages += 1
        return { tools: [tool(`t${pages}`)], nextCursor: `c${pages}` }
      },
    }),
  )

  assert.equal(registry.available().length, 100)
  const reason = 'Its list of tools has more than 100 pages. Only the first 100 tools are used.'
  assert.deepEqual(
    registry.list().flatMap((entry) => (entry.available ? [] : [[entry.name, entry.reason]])),
    [['shop', reason]],
  )
  assert.match(logged.join('\n'), /too many tools/)
  assert.ok(pages <= 110, `${pages} pages were read`)
})

for (const [size, count] of [
  [20, 220],
  [10, 500],
] as const) {
  test(`a list of ${count} tools on pages of ${size} is read to its end`, async (t) => {
    const { registry } = await connect(
      t,
      await serve(t, {
        tools(cursor = '0') {
          const end = Number(cursor) + size
          const tools = Array.from({ length: size }, (_, index) => tool(`t${Number(cursor) + index}`))
          return { tools, ...(end < count ? { nextCursor: String(end) } : {}) }
        },
      }),
    )

    assert.equal(registry.list().length, count)
    assert.equal(registry.available().length, count)
    assert.notEqual(registry.get(`t${count - 1}`), undefined)
  })
}

test('one tool whose definition is not valid does not take the others away, and its listing says why', async (t) => {
  const { registry } = await connect(
    t,
    await serve(t, {
      tools: (cursor) =>
        cursor === undefined
          ? {
              tools: [tool('good'), tool('no_type', { inputSchema: {} }), { inputSchema: { type: 'object' } }],
              nextCursor: 'b',
            }
          : { tools: [tool('later')], nextCursor: null },
    }),
  )

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['good', 'later'],
  )
  const reasons = registry.list().flatMap(({ name, reason }) => (reason === null ? [] : [`${name}: ${reason}`]))
  assert.equal(reasons.length, 2)
  assert.match(reasons[0]!, /^no_type: Its definition is not valid: inputSchema\.type: .*"object"/)
  assert.match(reasons[1]!, /^a tool without a name: Its definition is not valid: name: /)
  assert.equal((await registry.get('later')!.run({}, toolContext())).ok, true)
})

test('of very many tools the first are used, with a bounded description', async (t) => {
  const tools = Array.from({ length: 2000 }, (_, number) =>
    tool(`t${number}`, { description: 'd'.repeat(100_000 / 20) }),
  )
  tools[0] = tool('t0', { description: 'd'.repeat(100_000) })
  const { registry, logged } = await connect(t, await serve(t, { tools: () => ({ tools }) }))

  assert.equal(registry.available().length, 500)
  assert.equal(registry.get('t0')?.description.length, 20_000)
  assert.match(logged.join('\n'), /too many tools/)
  assert.equal(registry.list().at(-1)?.reason, 'It lists more than 500 tools. Only the first 500 tools are used.')
})

test('a million tools that are not valid do not stop the server, and the listing says so', async (t) => {
  const tools = [tool('good'), ...Array.from({ length: 1_000_000 }, () => ({}))]
  const { registry } = await connect(t, await serve(t, { tools: () => ({ tools }) }))

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['good'],
  )
  assert.match(registry.list().at(-1)?.reason ?? '', /^It lists 500 tools that are not valid\. /)
})

test('a tool whose schema is too large is not offered, and says why', async (t) => {
  const properties = Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`p${n}`, {}]))
  const tools = [tool('huge', { inputSchema: { type: 'object', properties } }), tool('fine')]
  const { registry } = await connect(t, await serve(t, { tools: () => ({ tools }) }))

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['fine'],
  )
  assert.match(registry.list()[0]?.reason ?? '', /keywords and values/)
})

test('structured content that is nested too deep is left out of the result', () => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level += 1) deep = { deep }

  const { output } = toToolResult({ content: [], structuredContent: deep }, 'x')

  assert.match(String(output), /left out/)
})

test('structured content with a number that is too large does not lose the result', () => {
  const structuredContent = JSON.parse('{"price":1e999,"list":[-1e999,2]}') as Record<string, unknown>

  const { output } = toToolResult({ content: [], structuredContent }, 'x')

  assert.deepEqual(output, { structuredContent: { price: null, list: [null, 2] } })
})

test('structured content with too many values is left out, and the text of the result stays', () => {
  const text = 'Found 40 rows.'
  const rows = Array.from({ length: 40 }, () => Array.from({ length: 5000 }, () => 1))

  const { ok, output } = toToolResult({ content: [{ type: 'text', text }], structuredContent: { rows } }, 'x')

  assert.equal(ok, true)
  assert.equal(output, `${text}\n[structured content is left out: it has more than 100000 values]`)
})

test('text with very many values is not parsed to compare it with the structured content', () => {
  const text = `[${'[],'.repeat(1_000_000)}1]`
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (...given) => {
    parsed += 1
    return parse(...given) as unknown
  }
  try {
    const { output } = toToolResult({ content: [{ type: 'text', text }], structuredContent: { a: 1 } }, 'x')
    assert.deepEqual(output, { text, structuredContent: { a: 1 } })
  } finally {
    JSON.parse = parse
  }
  assert.equal(parsed, 0)
})

/** The output of a tool that answers with this, or the message of the error. */
async function answered(t: TestContext, result: object): Promise<unknown> {
  const { registry } = await connect(t, await serve(t, { result: () => result }))
  try {
    return (await registry.get('any')!.run({}, toolContext())).output
  } catch (error) {
    return (error as Error).message
  }
}

test('of very many content blocks the first are used, and a note counts the rest', async (t) => {
  const content = Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'x' }))
  const lines = String(await answered(t, { content })).split('\n')

  assert.equal(lines.length, 33_334)
  assert.equal(lines.at(-1), '[66667 content blocks are left out: a result may have 100000 values]')
})

test('a million blocks that cannot be read are one sentence', async (t) => {
  assert.equal(
    await answered(t, { content: Array.from({ length: 1_000_000 }, () => ({})) }),
    'The answer of the MCP server shop cannot be read. The call may have been carried out. Nothing in its content can be read: it has no type.',
  )
})

for (const [what, result, expected] of [
  [
    'a block of an unknown type is named, and the others are used',
    {
      content: [
        { type: 'poem', text: 'x' },
        { type: 'text', text: 'y' },
      ],
    },
    '[a content block is left out: its type “poem” is not known]\ny',
  ],
  [
    'a block that is not valid is named with the reason, and the others are used',
    { content: [{ type: 'text', text: 'y' }, { type: 'image', data: 'AAAA' }, 7] },
    'y\n[a content block is left out: mimeType: Invalid input: expected string, received undefined]\n[a content block is left out: it is not an object]',
  ],
  [
    'annotations that are not valid do not matter',
    { content: [{ type: 'text', text: 'y', annotations: { priority: 9 }, _meta: 3 }] },
    'y',
  ],
  ['structured content that is null is none', { content: [{ type: 'text', text: 'y' }], structuredContent: null }, 'y'],
  ['content that is null is none', { content: null, structuredContent: { a: 1 } }, { structuredContent: { a: 1 } }],
  ['content that is a text is a text', { content: 'y' }, 'y'],
  [
    'content of another kind cannot be read',
    { content: 7 },
    'The answer of the MCP server shop cannot be read. The call may have been carried out. Nothing in its content can be read: it is not a list.',
  ],
] as const) {
  test(`in the answer of an MCP server, ${what}`, async (t) => {
    assert.deepEqual(await answered(t, result), expected)
  })
}

test('a password in the address is sent as a header, and stands in no log, listing or error', async (t) => {
  const seen = new Set<string | undefined>()
  const url = await serve(t, { onRequest: (incoming) => seen.add(incoming.headers.authorization) })
  url.username = 'ada'
  url.password = 's%cret!'
  const { registry, logged } = await connect(t, url)

  assert.equal((await registry.get('any')!.run({}, toolContext())).ok, true)
  assert.deepEqual([...seen], [`Basic ${Buffer.from('ada:s%cret!').toString('base64')}`])
  assert.doesNotMatch(JSON.stringify(registry.list()) + logged.join('\n'), /cret!/)
})

test('a password in the address of a server that is not there is shown nowhere', async (t) => {
  const url = new URL(`${await closedAddress()}/mcp`)
  url.username = 'ada'
  url.password = 'secret'
  const { registry, logged } = await connect(t, url)

  assert.equal(registry.list()[0]?.available, false)
  assert.doesNotMatch(JSON.stringify(registry.list()) + logged.join('\n'), /secret/)
})
