// An MCP server over streamable HTTP at /mcp. FAKE_MCP_MODE: `sessions` speaks the
// older protocol with sessions (which /_control/forget-sessions drops), otherwise
// the newest one. After /_control/refuse the next request gets HTTP 429.
// FAKE_MCP_TOKEN is demanded as a bearer token where set.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpHandler, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { createDemoServer, listChangeListeners } from './mcp-demo-tools.ts'
import { toRequest, writeResponse } from './web-request.ts'

const token = process.env.FAKE_MCP_TOKEN
let refuseNext = false
/** The trace context of each request so far; null if it had none. */
const traceparents: (string | null)[] = []
const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
const modern = createMcpHandler(createDemoServer, { responseMode: 'sse' })
if (process.env.FAKE_MCP_MODE !== 'sessions') listChangeListeners.add(() => modern.notify.toolsChanged())

const server = createServer((request, response) => {
  void handle(request, response)
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  if (incoming.url === '/_control/forget-sessions') {
    sessions.clear()
    outgoing.end()
    return
  }
  if (incoming.url === '/_control/sessions') {
    outgoing.end(String(sessions.size))
    return
  }
  if (incoming.url === '/_control/traceparents') {
    outgoing.end(JSON.stringify(traceparents))
    return
  }
  if (incoming.url === '/_control/refuse') {
    refuseNext = true
    outgoing.end()
    return
  }
  if (refuseNext) {
    refuseNext = false
    outgoing.writeHead(429).end()
    return
  }
  if (token !== undefined && incoming.headers.authorization !== `Bearer ${token}`) {
    outgoing.writeHead(401).end()
    return
  }
  const { traceparent } = incoming.headers
  traceparents.push(typeof traceparent === 'string' ? traceparent : null)
  const request = await toRequest(incoming, outgoing)
  await writeResponse(
    process.env.FAKE_MCP_MODE === 'sessions' ? await inSession(request) : await modern.fetch(request),
    outgoing,
  )
}

async function inSession(request: Request): Promise<Response> {
  const id = request.headers.get('mcp-session-id')
  if (id !== null) {
    return (await sessions.get(id)?.handleRequest(request)) ?? new Response('no such session', { status: 404 })
  }
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (newId) => void sessions.set(newId, transport),
    onsessionclosed: (oldId) => void sessions.delete(oldId),
  })
  await createDemoServer().connect(transport)
  return transport.handleRequest(request)
}
