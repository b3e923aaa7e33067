// /a2a: runs as tasks of the A2A protocol, versions 1.0 and 0.3, over JSON-RPC, and the agent cards by
// which clients find it. /a2a talks to the default agent, /a2a/:agentId to one agent.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { chatAgentId } from '../../agents/catalogue.ts'
import type { RpcId } from '../../dialects/a2a/a2a.ts'
import { sseFrame, sseHeaders } from '../../dialects/sse-encoding.ts'
import { AppError } from '../../errors/app-error.ts'
import { errorHeaders, httpStatusOf, toRequestError } from '../error-reply.ts'
import { chatAgents } from '../chat-agents.ts'
import { callerOf, type Server, type Services } from '../routes.ts'
import { type A2aCard, agentCardOf, type CardRequest, serverCard } from './agent-card.ts'
import { keepsHttpStatus, rpcErrorBody } from './rpc-error.ts'
import { readRpcCall, rpcIdOf, type RpcCall, versionOf } from './rpc-request.ts'
import {
  type A2aContext,
  cancelTask,
  getTask,
  listTasks,
  sendMessage,
  streamMessage,
  subscribe,
} from './task-methods.ts'

/** Served without a login, because a client has to read how to log in. They name only the default agent. */
export const publicCardPaths = ['/.well-known/agent-card.json', '/.well-known/agent.json']

type AgentParams = { Params: { agentId?: string } }

export function a2aRoutes(server: Server, services: Services, serverVersion: string): void {
  // Described by the protocol itself, not by OpenAPI.
  const schema = { hide: true }
  for (const url of publicCardPaths) {
    server.get(url, { schema }, async (request, reply) => {
      const agents = chatAgents(services).filter(({ id }) => id === chatAgentId)
      return await sendCard(reply, serverCard(cardRequest(request), agents))
    })
  }
  for (const name of ['agent-card.json', 'agent.json']) {
    server.get<AgentParams>(`/a2a/:agentId/.well-known/${name}`, { schema }, async (request, reply) => {
      const { card } = services.catalogue.get(request.params.agentId ?? '')
      return await sendCard(reply, agentCardOf(cardRequest(request), card))
    })
  }
  for (const url of ['/a2a', '/a2a/:agentId']) {
    server.post<AgentParams>(url, { schema }, async (request, reply) => await answer(request, reply))
  }

  async function answer(request: FastifyRequest<AgentParams>, reply: FastifyReply): Promise<FastifyReply> {
    const id = rpcIdOf(request.body)
    let asStream = false
    try {
      const { agentId } = request.params
      if (agentId !== undefined) services.catalogue.get(agentId)
      const call = readRpcCall(request.body, versionHeader(request))
      // A client of 0.3 reads the error of a streaming method only from a stream.
      asStream = call.version === '0.3' && (call.method === 'stream' || call.method === 'subscribe')
      const context: A2aContext = {
        services,
        request,
        reply,
        caller: callerOf(request, services),
        agentId,
        version: call.version,
        requestId: id,
        origin: originOf(request),
      }
      return await dispatch(context, call)
    } catch (thrown) {
      return sendError(request, reply, thrown, { id, asStream })
    }
  }

  async function dispatch(context: A2aContext, { method, params, version }: RpcCall): Promise<FastifyReply> {
    switch (method) {
      case 'send':
        return sendResult(context, await sendMessage(context, params))
      case 'stream':
        return await streamMessage(context, params)
      case 'get':
        return sendResult(context, await getTask(context, params))
      case 'list':
        return sendResult(context, await listTasks(context, params))
      case 'cancel':
        return sendResult(context, await cancelTask(context, params))
      case 'subscribe':
        return await subscribe(context, params)
      case 'extendedCard': {
        const { agentId, request } = context
        const asked = { ...cardRequest(request), version }
        const card =
          agentId === undefined
            ? serverCard(asked, chatAgents(services))
            : agentCardOf(asked, services.catalogue.get(agentId).card)
        return sendResult(context, card)
      }
      case 'push':
        throw new AppError(
          'push_notifications_unsupported',
          'This server sends no push notifications; stream the task, subscribe to it, or ask for it again.',
        )
    }
  }

  function cardRequest(request: FastifyRequest): CardRequest {
    return {
      version: versionOf(versionHeader(request)),
      origin: originOf(request),
      serverVersion,
      loginRequired: services.settings.authMode === 'required',
    }
  }
}

function originOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${host}`
}

function versionHeader({ headers, query }: FastifyRequest): string | undefined {
  const header = headers['a2a-version'] ?? (query as Record<string, unknown>)['A2A-Version']
  return typeof header === 'string' ? header : undefined
}

async function sendCard(reply: FastifyReply, card: A2aCard): Promise<FastifyReply> {
  return await reply.headers({ vary: 'A2A-Version', 'cache-control': 'no-cache' }).send(card)
}

function sendResult({ reply, requestId }: A2aContext, result: unknown): FastifyReply {
  return reply.headers({ 'cache-control': 'no-store' }).send({ jsonrpc: '2.0', id: requestId, result })
}

function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  thrown: unknown,
  { id, asStream }: { id: RpcId; asStream: boolean },
): FastifyReply {
  const error = toRequestError(thrown, request)
  if (error.kind === 'bug') request.log.error({ err: error.cause ?? error, code: error.code }, 'request failed')
  const body = rpcErrorBody(error, id)
  reply.code(keepsHttpStatus(error) ? httpStatusOf(error) : 200).headers(errorHeaders(error))
  if (!asStream || keepsHttpStatus(error)) return reply.send(body)
  return reply.headers(sseHeaders).send(sseFrame(null, null, JSON.stringify(body)))
}
