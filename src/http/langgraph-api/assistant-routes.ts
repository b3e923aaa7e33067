// The agents as assistants of LangGraph. They are read only: agents are defined in files.

import { z } from 'zod'
import type { AgentCard } from '../../agents/agent-definition.ts'
import { isoTime } from '../../kit/clock.ts'
import { chatAgents } from '../chat-agents.ts'
import { idParam, type Server, type Services } from '../routes.ts'

const searchBody = z
  .object({
    graph_id: z.string().max(200).nullish(),
    name: z.string().max(200).nullish(),
    limit: z.number().int().min(0).max(1000).nullish(),
    offset: z.number().int().min(0).nullish(),
  })
  .loose()
  .nullish()

const params = z.object({ assistantId: idParam })

export function assistantRoutes(server: Server, services: Services): void {
  const schema = { hide: true }
  const found = (body: z.infer<typeof searchBody>) =>
    chatAgents(services).filter(
      (card) =>
        (body?.graph_id == null || card.id === body.graph_id) &&
        (body?.name == null || (card.name ?? card.id).toLowerCase().includes(body.name.toLowerCase())),
    )

  server.post('/langgraph/assistants/search', { schema: { ...schema, body: searchBody } }, async ({ body }, reply) => {
    const offset = body?.offset ?? 0
    const limit = body?.limit ?? 10
    const all = found(body)
    if (offset + limit < all.length) reply.header('x-pagination-next', String(offset + limit))
    return all.slice(offset, offset + limit).map(assistantView)
  })

  server.post(
    '/langgraph/assistants/count',
    { schema: { ...schema, body: searchBody } },
    async ({ body }) => found(body).length,
  )

  server.get('/langgraph/assistants/:assistantId', { schema: { ...schema, params } }, async (request) =>
    assistantView(services.catalogue.get(request.params.assistantId).card),
  )

  server.get('/langgraph/assistants/:assistantId/schemas', { schema: { ...schema, params } }, async (request) => {
    const { card } = services.catalogue.get(request.params.assistantId)
    return {
      graph_id: card.id,
      input_schema: stateSchema,
      output_schema: stateSchema,
      state_schema: stateSchema,
      config_schema: {},
      context_schema: {},
    }
  })

  server.get('/langgraph/assistants/:assistantId/graph', { schema: { ...schema, params } }, async (request) => {
    services.catalogue.get(request.params.assistantId)
    return graph
  })
}

const stateSchema = {
  type: 'object',
  properties: { messages: { type: 'array', items: { type: 'object' } } },
  required: ['messages'],
}

/** What every run does: the model answers, tools run, and the model goes on. */
const graph = {
  nodes: ['__start__', 'agent', 'tools', '__end__'].map((id) => ({
    id,
    type: 'runnable',
    data: { id: [id], name: id },
  })),
  edges: [
    { source: '__start__', target: 'agent' },
    { source: 'agent', target: 'tools', conditional: true },
    { source: 'agent', target: '__end__', conditional: true },
    { source: 'tools', target: 'agent' },
  ],
}

/** Definitions have no times; clients only sort by them. */
const definedAt = isoTime(0)

function assistantView({ id, name, description, version }: AgentCard): Record<string, unknown> {
  return {
    assistant_id: id,
    graph_id: id,
    name: name ?? id,
    description: description ?? '',
    version: 1,
    config: {},
    context: {},
    metadata: { version },
    created_at: definedAt,
    updated_at: definedAt,
  }
}
