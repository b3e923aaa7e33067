// /v1/agent/list: what each agent is for, whether it can be used, and the schemas of its input and result.
// An agent that cannot be used is listed with the reason.

import { z } from 'zod'
import { type AgentOperation, type AgentTexts, languageTag } from '../../agents/agent-definition.ts'
import { modelProblem } from '../../agents/agent-model.ts'
import type { AgentListing } from '../../agents/read-agents.ts'
import type { Models } from '../../models/model.ts'
import type { Server, Services } from '../routes.ts'

const jsonSchema = z.record(z.string(), z.unknown()).describe('A JSON Schema; empty if there is no rule.')

const operationView = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    inputSchema: jsonSchema,
    outputSchema: jsonSchema,
  })
  .meta({ id: 'AgentOperation' })

const agentView = z
  .object({
    id: z.string().describe('The `agentId` of requests.'),
    name: z.string(),
    description: z.string(),
    version: z.string().describe('`unknown` if the definition cannot be read.'),
    status: z.enum(['available', 'unavailable']),
    statusError: z
      .string()
      .nullable()
      .describe('Why the agent is unavailable, and what to do; null if it is available.'),
    operations: z.array(operationView).describe('Empty if the agent does one thing only.'),
    tools: z.object({ mode: z.string(), allowedTools: z.array(z.string()) }),
    cache: z.object({
      ttl: z
        .number()
        .nullable()
        .describe('Seconds until a stored result expires; 0 if it never does; null if results are not stored.'),
    }),
    memory: z.object({ strategy: z.string().nullable(), maxTokens: z.number().nullable() }),
    inputSchema: jsonSchema.describe('What `input` must be. If the agent has operations, each has its own.'),
    outputSchema: jsonSchema.describe('What `data` is. Properties that the server adds are marked `readOnly`.'),
    usage: z.string(),
    endpoint: z.string(),
  })
  .meta({ id: 'AgentInfo' })

const listQuery = z.object({
  language: languageTag
    .optional()
    .describe('Names, descriptions and usages in this language, such as `en`, where the definition has them.'),
})

export function agentListRoute(server: Server, services: Pick<Services, 'catalogue' | 'models'>): void {
  const { catalogue, models } = services
  server.get(
    '/v1/agent/list',
    {
      schema: {
        tags: ['Agent'],
        summary: 'All agents, with their schemas and whether they can be used',
        description: 'The built-in agents come first, in a fixed order, then those of the operator by id.',
        querystring: listQuery,
        response: { 200: z.object({ agents: z.array(agentView), total: z.number() }) },
      },
    },
    async ({ query: { language } }) => {
      const agents = catalogue.list().map((listing) => agentInfo(listing, models, language))
      return { agents, total: agents.length }
    },
  )
}

function agentInfo(listing: AgentListing, models: Models, language: string | undefined): z.infer<typeof agentView> {
  const { id, card, definition } = listing
  const statusError = listing.error ?? modelProblem(card?.model, models)
  const operations = definition?.operations ?? []
  const only = operations.find((operation) => operation.id === null)
  const texts = { ...card, ...translated(card, language) }
  return {
    id,
    name: texts.name ?? id,
    description: texts.description ?? '',
    version: definition === null ? 'unknown' : definition.card.version,
    status: statusError === null ? 'available' : 'unavailable',
    statusError,
    operations: operations.flatMap((operation) => operationInfo(operation, language)),
    tools: card?.tools ?? { mode: 'none', allowedTools: [] },
    cache: { ttl: card?.cache?.ttl ?? null },
    memory: { strategy: card?.memory.strategy ?? null, maxTokens: card?.memory.maxTokens ?? null },
    inputSchema: only?.inputSchema ?? {},
    outputSchema: only?.dataSchema ?? {},
    usage: texts.usage ?? '',
    endpoint: card?.endpoint ?? '/v1/agent/run',
  }
}

function operationInfo(operation: AgentOperation, language: string | undefined): z.infer<typeof operationView>[] {
  const { id, inputSchema, dataSchema } = operation
  if (id === null) return []
  const { name = operation.name, description = operation.description } = translated(operation, language)
  return [{ id, name, description, inputSchema: inputSchema ?? {}, outputSchema: dataSchema ?? {} }]
}

/** The texts that were translated into this language. */
function translated(
  texts: { translations?: Partial<Record<string, AgentTexts>> | undefined } | null,
  language: string | undefined,
): AgentTexts {
  return (language === undefined ? undefined : texts?.translations?.[language]) ?? {}
}
