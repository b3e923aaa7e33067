// The definition of an agent: a folder with `agent.json`, templates and schemas. This file has the format of
// `agent.json` and the type of a definition after its files were read and checked (read-definition.ts).
//
// An agent is a list of operations. Fields of an operation override the fields of its agent. An agent that
// declares no operations has one, without an id.

import { z } from 'zod'
import { clientTool } from '../journal/client-tool.ts'
import { providerOptions } from '../journal/provider-options.ts'
import { providerToolList } from '../journal/provider-tools.ts'
import { modelChoice } from '../journal/model-chain.ts'

/**
 * The data that code collects for a one-shot run: the request's input only, a conversation with its messages, a contact
 * with its records, a contact with its recent interactions, or all contacts of the user.
 */
const agentReads = ['input', 'conversation', 'contact', 'contact_brief', 'network'] as const
export type AgentReads = (typeof agentReads)[number]

/** The thing that a result is about. Its id is `input.conversationId`, `input.contactId`, the user's id, or null. */
const agentScopes = ['conversation', 'contact', 'user', 'global'] as const
export type AgentScope = (typeof agentScopes)[number]

export const scopeOfReads: Record<AgentReads, AgentScope> = {
  input: 'user',
  conversation: 'conversation',
  contact: 'contact',
  contact_brief: 'contact',
  network: 'user',
}

const id = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"')
const line = z.string().min(1).max(200)
const paragraph = z.string().max(2000)
/** A path inside the folder of the definition. */
const file = z.string().min(1).max(200)

const promptFiles = z.strictObject({
  systemTemplate: file,
  /** Renders the message to the model; absent means the collected data as JSON. Chats do not use it. */
  userTemplate: file.optional(),
  defaultsFile: file.optional(),
})

const runFields = {
  reads: z.enum(agentReads).optional(),
  /** Absent means the scope of `reads`. */
  scope: z.enum(agentScopes).optional(),
  /** `required`: the answer and each object in its lists must cite a record that was given to the model. */
  citations: z.enum(['required']).optional(),
  validation: z
    .strictObject({
      inputSchema: file.optional(),
      /** What the model has to write. Absent means any text, which becomes `{ "content": text }`. */
      outputSchema: file.optional(),
      /** The properties of the result that the server adds. Only for display in the list of agents. */
      serverFields: file.optional(),
    })
    .optional(),
  /** Absent: results are not stored. `ttl` is in seconds; 0 means that a result never expires. */
  cache: z
    .strictObject({
      ttl: z.number().int().min(0),
      /** The fields of `input` that change the result, if not all of them do. */
      sourceHashFields: z.array(z.string().min(1).max(64)).max(50).optional(),
    })
    .optional(),
}

/** A header value is a text, or the name of an environment variable that holds it, so that no secret stands in a definition. */
const headerValue = z.union([
  z.string().max(4000),
  z.strictObject({ env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/) }),
])

/** Headers that describe the request or the connection. */
const ownHeaders = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The name of an engine of this server, or a remote agent that speaks AG-UI. */
const agentEngine = z.union([
  z.enum(['local', 'openclaw']),
  z.strictObject({
    kind: z.literal('ag-ui'),
    url: z
      .url({ protocol: /^https?$/ })
      .max(2000)
      .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), 'must not contain a user name or password; use headers'),
    headers: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9-]{1,100}$/)
          .refine((name) => !ownHeaders.has(name.toLowerCase()), 'is a header that the server sets itself'),
        headerValue,
      )
      .optional(),
  }),
])

const operationTexts = z.strictObject({ name: line.optional(), description: paragraph.optional() })
const agentTexts = operationTexts.extend({ usage: paragraph.optional() })
export const languageTag = z
  .string()
  .regex(/^[a-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$/, 'must be a language tag such as "en" or "zh-Hant"')

export type AgentTexts = z.infer<typeof agentTexts>

const operationCard = z.strictObject({
  id,
  ...operationTexts.shape,
  /** The same texts in other languages, for pages that show them. */
  translations: z.record(languageTag, operationTexts).optional(),
  prompt: promptFiles.partial().optional(),
  ...runFields,
})

const operationsMax = 20

export const agentCard = z.strictObject({
  /** For editors; not used. */
  $schema: z.string().optional(),
  id,
  version: z.string().min(1).max(64),
  ...agentTexts.shape,
  /** The same texts in other languages, for pages that show them. */
  translations: z.record(languageTag, agentTexts).optional(),
  endpoint: line.optional(),
  /** `provider/model`, or a list of which the next is asked if the one before cannot answer; absent means the server's default. */
  model: modelChoice.optional(),
  /** Passed to the provider by name, for example `{ "anthropic": { "effort": "high" } }`. */
  providerOptions: providerOptions.optional(),
  /** Tools that the provider runs itself while it answers, such as `web_search`. */
  providerTools: providerToolList.optional(),
  /** The engine that answers chats with this agent; absent means the server's default. Operations always run locally. */
  engine: agentEngine.optional(),
  prompt: promptFiles,
  /** The schema of the final answers of chats with this agent; absent means any text. A request may bring another one. */
  answerSchema: file.optional(),
  /** Whether a request may add instructions of its own (messages with role `system`); absent means allowed. */
  callerInstructions: z.enum(['allowed', 'refused']).optional(),
  memory: z
    .strictObject({
      /** What happens to older messages that do not fit. `conversation` and `declarative` are for data that code collects. */
      strategy: z.enum(['sliding_window', 'summary', 'conversation', 'declarative']),
      /** How much of the history and the run the model is shown; absent means as much as its context window holds. */
      maxTokens: z.number().int().positive().optional(),
      /** `provider/model` that writes summaries; absent means the model of the run. */
      summaryModel: z.string().min(1).max(200).optional(),
    })
    .refine(({ strategy, summaryModel }) => summaryModel === undefined || strategy === 'summary', {
      message: 'is used only with the strategy "summary"',
      path: ['summaryModel'],
    }),
  tools: z.strictObject({
    mode: z.enum(['none', 'allowlist', 'denylist']),
    /** The names that `mode` applies to: the allowed tools, or with `denylist` the refused ones. */
    allowedTools: z.array(z.string().min(1).max(200)).max(500),
  }),
  /** Tools that the clients of chats with this agent execute. A request may bring others. */
  clientTools: z.array(clientTool).optional(),
  ...runFields,
  operations: z.array(operationCard).max(operationsMax).optional(),
})

export type AgentCard = z.infer<typeof agentCard>

/** A JSON Schema that was checked with `schemaProblem`. */
export type AgentSchema = Record<string, unknown>

/** One thing that an agent can be asked to do in a one-shot run. */
export type AgentOperation = {
  /** Null if the agent declares no operations; this is then its only one. */
  id: string | null
  name: string
  description: string
  /** By language. */
  translations?: Record<string, AgentTexts>
  systemTemplate: string
  userTemplate: string
  defaults: Record<string, unknown>
  /** Null: any object. */
  inputSchema: AgentSchema | null
  /** What the model has to write. Null: any text. */
  outputSchema: AgentSchema | null
  /** The whole `data` of a response: the output schema and the fields that the server adds, marked `readOnly`. */
  dataSchema: AgentSchema | null
  /** Null: results are not stored. `ttlMs` null: they never expire. `inputFields` null: every field of the input counts. */
  cache: { ttlMs: number | null; inputFields: readonly string[] | null } | null
  reads: AgentReads
  scope: AgentScope
  citations: 'required' | 'optional'
  /** Changes with the agent's version, and also if a template, a default or the output schema changes. */
  promptVersion: string
}

export type AgentDefinition = {
  card: AgentCard
  /** The agent's own prompt. Chats use it; a one-shot run uses the one of its operation. */
  systemTemplate: string
  userTemplate: string
  defaults: Record<string, unknown>
  /** The final answer of a chat has to fit it. Absent means any text. */
  answerSchema?: AgentSchema
  /** At least one. */
  operations: readonly AgentOperation[]
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
