// /mcp: the agents for MCP clients, over streamable HTTP. Serves the protocol with sessions (2025) and the one without
// (2026). No session is kept: the session id that an older client gets only connects its cancellation with its call.

import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { modelProblem } from '../../agents/agent-model.ts'
import { namesUser } from '../caller.ts'
import { callerOf, type Server, type Services } from '../routes.ts'
import { installAgentTools } from './agent-server.ts'
import { agentTools } from './agent-tools.ts'
import { OpenCalls } from './open-calls.ts'

const sessionHeader = 'mcp-session-id'
const sessionCharsMax = 100

export function mcpRoute(server: Server, services: Services, version: string): void {
  const openCalls = new OpenCalls()
  server.route({
    method: ['GET', 'POST', 'DELETE'],
    url: '/mcp',
    // Described by the protocol itself, not by OpenAPI.
    schema: { hide: true },
    handler: async (request, reply) => await serve(request, reply),
  })

  async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Loaded at the first request, because most servers are never asked.
    const {
      createMcpHandler,
      ProtocolError,
      ProtocolErrorCode,
      Server: McpServer,
    } = await import('@modelcontextprotocol/server')
    const session = sessionOf(request)
    const callKey = (requestId: string | number) =>
      session === undefined ? undefined : JSON.stringify([request.login?.userId ?? null, session, requestId])
    for (const requestId of cancelledIn(request.body)) openCalls.cancel(callKey(requestId) ?? '')

    const handler = createMcpHandler(
      ({ era }) => {
        const mcp = new McpServer({ name: 'polylog', version }, { capabilities: { tools: {} } })
        installAgentTools(
          mcp,
          {
            services,
            tools: agentTools(
              services.catalogue.list(),
              ({ card }) => modelProblem(card?.model, services.models) === null,
              request.login !== null || namesUser(request.claimed),
            ),
            callerOf: ({ userId }) =>
              callerOf(namesUser(request.claimed) ? request : { login: request.login, claimed: { userId } }, services),
            openCalls,
            callKey,
            // In the newer protocol closing the connection is the way to cancel a call.
            cancelsOnDisconnect: era === 'modern' || services.settings.onDisconnect === 'cancel',
            onError: (error) => request.log.error({ err: error }, 'a call of an MCP client failed'),
          },
          (name) => new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name)}.`),
        )
        return mcp
      },
      {
        // Nothing is announced to subscribers, so a subscription would only hold a connection.
        maxSubscriptions: 0,
        onerror: (error) => request.log.debug({ err: error }, 'an MCP request was refused'),
      },
    )
    const response = await handler.fetch(webRequest(request, disconnectOf(reply)), { parsedBody: request.body })
    const headers = Object.fromEntries(response.headers)
    if (isInitialize(request.body) && response.ok) headers[sessionHeader] = services.ids()
    return await reply
      .code(response.status)
      .headers({ ...headers, 'cache-control': 'no-store' })
      .send(response.body === null ? null : Readable.fromWeb(response.body))
  }
}

function sessionOf(request: FastifyRequest): string | undefined {
  const id = request.headers[sessionHeader]
  return typeof id === 'string' && id !== '' && id.length <= sessionCharsMax ? id : undefined
}

/** Aborted if the client closes the connection before it has the whole answer. */
function disconnectOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.on('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  return gone.signal
}

/** Only the headers that the protocol uses. The login was checked before, and the body was parsed within our limits. */
function webRequest({ method, headers }: FastifyRequest, signal: AbortSignal): Request {
  const used = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && (name === 'accept' || name === 'content-type' || name.startsWith('mcp-'))
      ? [[name, value]]
      : [],
  )
  return new Request('http://localhost/mcp', { method, headers: used, signal })
}

type Message = { method?: unknown; params?: { requestId?: unknown } | null }

function messagesOf(body: unknown): Message[] {
  return (Array.isArray(body) ? body : [body]).filter(
    (entry) => typeof entry === 'object' && entry !== null,
  ) as Message[]
}

function isInitialize(body: unknown): boolean {
  return messagesOf(body).some(({ method }) => method === 'initialize')
}

/** The ids of the requests that this body cancels. */
function cancelledIn(body: unknown): (string | number)[] {
  return messagesOf(body).flatMap(({ method, params }) => {
    const id = method === 'notifications/cancelled' ? params?.requestId : undefined
    return typeof id === 'string' || typeof id === 'number' ? [id] : []
  })
}
