// An MCP server with one tool that must not run twice, in a process that outlives the
// server under test: `pay` records a payment and answers a little later (after `ms`), so that a
// kill can fall between the two. `stamp` is the same, but may run twice. `audit` changes nothing, and takes as long. GET /ledger
// shows what was paid, and how often; GET /stamps what was stamped.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type CallToolResult, createMcpHandler, Server, type Tool } from '@modelcontextprotocol/server'
import { toRequest, writeResponse } from './web-request.ts'

const ledger = new Map<string, number>()
const stamps = new Map<string, number>()

const pay: Tool = {
  name: 'pay',
  description: 'Pays once.',
  annotations: { destructiveHint: true },
  inputSchema: {
    type: 'object',
    properties: { payment: { type: 'string' }, ms: { type: 'integer' } },
    required: ['payment'],
  },
}

const stamp: Tool = {
  name: 'stamp',
  description: 'Stamps an entry. A second stamp changes nothing.',
  annotations: { idempotentHint: true },
  inputSchema: {
    type: 'object',
    properties: { entry: { type: 'string' }, ms: { type: 'integer' } },
    required: ['entry'],
  },
}

const audit: Tool = {
  name: 'audit',
  description: 'Looks at the payments.',
  annotations: { readOnlyHint: true },
  inputSchema: { type: 'object', properties: { ms: { type: 'integer' } } },
}

const mcp = createMcpHandler(
  () => {
    const server = new Server({ name: 'ledger', version: '1.0.0' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', async () => ({ tools: [pay, stamp, audit] }))
    server.setRequestHandler('tools/call', async ({ params }): Promise<CallToolResult> => {
      const payment = String(params.arguments?.['payment'])
      if (params.name === 'pay') count(ledger, payment)
      if (params.name === 'stamp') count(stamps, String(params.arguments?.['entry']))
      await wait(Number(params.arguments?.['ms'] ?? 5))
      return { content: [{ type: 'text', text: `paid ${payment}` }] }
    })
    return server
  },
  { responseMode: 'sse' },
)

const server = createServer((incoming, outgoing) => {
  void handle(incoming, outgoing).catch(() => outgoing.destroy())
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const counts = incoming.url === '/ledger' ? ledger : incoming.url === '/stamps' ? stamps : undefined
  if (counts !== undefined) {
    outgoing.end(JSON.stringify(Object.fromEntries(counts)))
    return
  }
  await writeResponse(await mcp.fetch(await toRequest(incoming, outgoing)), outgoing)
}
