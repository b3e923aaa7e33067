// The definition of an agent: a folder with `agent.json`, templates and schemas. Users add
// their own folders; a broken one is listed as unavailable with the reason and never stops
// the server.

import { z } from 'zod'

export const agentCard = z.object({
  id: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  version: z.string().min(1),
  name: z.string().optional(),
  description: z.string().optional(),
  usage: z.string().optional(),
  endpoint: z.string().optional(),
  /** `provider/model`; absent means the server's default. */
  model: z.string().optional(),
  prompt: z.object({
    systemTemplate: z.string(),
    userTemplate: z.string().optional(),
    defaultsFile: z.string().optional(),
  }),
  /** Whether a request may add instructions of its own (messages with role `system`); absent means allowed. */
  callerInstructions: z.enum(['allowed', 'refused']).optional(),
  memory: z.object({
    strategy: z.enum(['sliding_window', 'conversation', 'declarative']),
    maxTokens: z.number().int().positive(),
  }),
  tools: z.object({
    mode: z.enum(['none', 'allowlist', 'denylist']),
    /** The names that `mode` applies to: the allowed tools, or with `denylist` the refused ones. */
    allowedTools: z.array(z.string()),
  }),
  validation: z.object({ inputSchema: z.string().optional(), outputSchema: z.string().optional() }).optional(),
  cache: z.object({ ttl: z.number().int(), sourceHashFields: z.array(z.string()).optional() }).optional(),
})

export type AgentCard = z.infer<typeof agentCard>

export type AgentDefinition = {
  card: AgentCard
  systemTemplate: string
  userTemplate: string
  defaults: Record<string, unknown>
}

/** Whether the agent may use a tool of this name. */
export function agentAllowsTool(card: AgentCard, toolName: string): boolean {
  switch (card.tools.mode) {
    case 'none':
      return false
    case 'allowlist':
      return card.tools.allowedTools.includes(toolName)
    case 'denylist':
      return !card.tools.allowedTools.includes(toolName)
  }
}
