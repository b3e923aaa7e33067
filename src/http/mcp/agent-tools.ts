// The agents as MCP tools: one tool for each available one-shot agent, or for each of its operations. Pure.

import type { AgentOperation, AgentSchema } from '../../agents/agent-definition.ts'
import type { AgentListing } from '../../agents/read-agents.ts'

export type AgentTool = {
  name: string
  title: string
  description: string
  inputSchema: AgentSchema & { type: 'object' }
  outputSchema?: AgentSchema & { type: 'object' }
  agentId: string
  operation: string | null
}

/** Agents of another endpoint are chat agents; they are not run once. */
const oneShotEndpoint = '/v1/agent/run'

/** `userIsKnown`: the caller is a known user, so no tool asks for a `userId`. */
export function agentTools(
  listings: readonly AgentListing[],
  isAvailable: (listing: AgentListing) => boolean,
  userIsKnown: boolean,
): AgentTool[] {
  const names = new Set<string>()
  return listings.flatMap((listing) => {
    const { id, definition } = listing
    if (definition === null || !isAvailable(listing)) return []
    if ((definition.card.endpoint ?? oneShotEndpoint) !== oneShotEndpoint) return []
    return definition.operations.map((operation) => {
      const name = freeName(operation.id === null ? id : `${id}_${operation.id}`, names)
      return toolOf(name, listing, operation, userIsKnown)
    })
  })
}

function toolOf(name: string, { id, card }: AgentListing, operation: AgentOperation, userIsKnown: boolean): AgentTool {
  const { dataSchema } = operation
  const texts = operation.id === null ? [card?.description, card?.usage] : [operation.description, card?.description]
  const input = operation.inputSchema ?? {}
  return {
    name,
    title: operation.name,
    description: texts.find((text) => text !== undefined && text !== '') ?? '',
    inputSchema: { ...(userIsKnown ? withoutUserId(input) : input), type: 'object' },
    ...(dataSchema === null ? {} : { outputSchema: { ...dataSchema, type: 'object' as const } }),
    agentId: id,
    operation: operation.id,
  }
}

/** The agent `a_b` and the operation `b` of the agent `a` would have the same name; the later one gets a number. */
function freeName(wanted: string, taken: Set<string>): string {
  let name = wanted
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}_${count}`
  taken.add(name)
  return name
}

function withoutUserId(schema: AgentSchema): AgentSchema {
  const { properties, required, ...rest } = schema
  const { userId: _known, ...others } = (properties ?? {}) as Record<string, unknown>
  return {
    ...rest,
    properties: others,
    required: Array.isArray(required) ? required.filter((name) => name !== 'userId') : [],
  }
}
