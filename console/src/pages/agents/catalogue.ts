// The agents of the server, as GET /v1/agent/list shows them.

import { useLoaded } from '../../api/use-loaded.ts'
import { preferences } from '../../app/preferences.ts'
import type { JsonSchema } from '../../ui/schema-fields.ts'

export type AgentOperation = {
  id: string
  name: string
  description: string
  inputSchema: JsonSchema
  outputSchema: JsonSchema
}

export type AgentInfo = {
  id: string
  name: string
  description: string
  version: string
  status: 'available' | 'unavailable'
  /** Why it is unavailable, and what to do. */
  statusError: string | null
  operations: AgentOperation[]
  tools: { mode: string; allowedTools: string[] }
  /** Seconds; 0: never expires; null: results are not stored. */
  cache: { ttl: number | null }
  inputSchema: JsonSchema
  outputSchema: JsonSchema
  usage: string
  endpoint: string
}

/** Names and descriptions are in the language of the person if the definition of the agent has them in it. */
export function useCatalogue() {
  const { language } = preferences.use()
  return useLoaded(`agents ${language}`, async ({ json }, signal) => {
    return (await json<{ agents: AgentInfo[] }>('/v1/agent/list', { query: { language }, signal })).agents
  })
}
