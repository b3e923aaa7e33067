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

test('a list of tools without an end makes the server unavailable', async (t) => {
  let pages = 0
  const { registry } = await connect(
    t,
    await serve(t, {
      tools: () => {
        pages += 1
        return { tools: [tool(`t${pages}`)], nextCursor: `c${pages}` }
      },
    }),
  )

  assert.deepEqual(registry.available(), [])
  assert.match(registry.list()[0]?.reason ?? '', /pagination/)
  assert.ok(pages <= 10, `${pages} pages were read`)
})

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
