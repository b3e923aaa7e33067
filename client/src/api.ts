// The requests and the JSON answers of the routes that the client calls. Written by hand, like all types here; a test
// compares the answers with the schemas of the server.

import type { Part, UsageTotals } from './journal.ts'
import type { JsonValue } from './json.ts'
import type { TimelineEntry } from './native.ts'

export type ChatRequest = {
  /** The question; or `messages`. */
  input?: string
  /** The content of a message is text, or a list of parts: `{ type: 'text', text }`, `{ type: 'file', fileId }`. */
  messages?: { role: 'system' | 'user' | 'assistant' | 'tool'; content: unknown; [field: string]: unknown }[]
  /** Answers the last question of the conversation again; the new answer replaces the old one. Instead of `input`. */
  regenerate?: boolean
  /** Your name for the conversation. Without one, a new conversation starts. */
  conversationId?: string
  agentId?: string
  /** `provider/model`. */
  model?: string
  engine?: string
  /** The state of your application; the model reads it. */
  context?: Record<string, unknown>
  /** Tools that your client executes; `inputSchema` is a JSON Schema. */
  clientTools?: { name: string; description?: string; inputSchema: Record<string, unknown> }[]
  /** The final answer is JSON that fits this JSON Schema. */
  output?: { schema: Record<string, unknown> }
  temperature?: number
  maxTokens?: number
  providerOptions?: Record<string, Record<string, JsonValue>>
  /** What to do if another run of the conversation has not ended. Default `queue`. */
  whenBusy?: 'queue' | 'reject' | 'cancel'
  /** What happens to the run when the connection closes. `cancel` also cancels it when the network drops. */
  onDisconnect?: 'continue' | 'cancel'
}

export type AgentRequest = {
  agentId: string
  operation?: string
  input: Record<string, unknown>
  options?: { useCache?: boolean; forceRefresh?: boolean }
}

/** Times are ISO 8601 text; the field with the suffix `Ms` has the same in epoch milliseconds. */
export type RunInfo = {
  runId: string
  agentId: string
  conversationId: string | null
  status: 'queued' | 'running' | 'awaiting_input' | 'succeeded' | 'failed' | 'cancelled'
  attempt: number
  engine: string | null
  /** The cursor of its newest event. */
  cursor: string
  createdAt: string
  createdAtMs: number
  startedAt: string | null
  startedAtMs: number | null
  endedAt: string | null
  endedAtMs: number | null
  error: unknown
  cancelRequested: boolean
  /** The calls that wait for a result of your client. Only in the answer to `getRun`. */
  clientToolCalls?: {
    toolCallId: string
    interactionId: string
    toolName: string
    input: unknown
    expiresAt: string | null
    expiresAtMs: number | null
  }[]
  usage: UsageTotals | null
}

export type Timeline = {
  runId: string
  agentId: string
  conversationId: string | null
  status: string
  startedAt: string
  startedAtMs: number
  endedAt?: string
  endedAtMs?: number
  events: TimelineEntry[]
  hasMore: boolean
  /** How many stored rows could no longer be read. */
  skipped: number
}

/** The result of a call that your client has executed. */
export type ToolResult = { toolCallId: string; output: JsonValue } | { toolCallId: string; error: string }

/** `waiting` are the ids of the calls that still need a result. */
export type StoredToolResults = { runId: string; status: string; accepted: string[]; waiting: string[] }

/** `accepted` is false if the run had already ended in another way. */
export type CancelledRun = RunInfo & { accepted: boolean }

export type Conversation = {
  id: string
  title: string | null
  summary: string | null
  contactId: string | null
  isArchived: boolean
  createdAt: string
  createdAtMs: number
  updatedAt: string
  updatedAtMs: number
  /** Only in the answer to `conversations.get`. */
  usage?: UsageTotals | null
  /** The run that has not ended: `attach` to it. Only in the answer to `conversations.get`. */
  activeRun?: { runId: string; status: string; cursor: string } | null
}

export type StoredMessage = {
  id: string
  conversationId?: string
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** Present if the message has files. */
  parts?: Part[]
  createdAt: string
  createdAtMs: number
  toolCallId: string | null
  references: unknown[]
  /** `runId`: the run that the message belongs to. */
  metadata: Record<string, unknown>
  /** Your feedback on an answer; absent if you gave none. */
  feedback?: { reaction: 'like' | 'dislike' | null; comments: number }
}

export type Confirmation = {
  id: string
  runId: string
  conversationId: string | null
  toolCallId: string | null
  toolName: string | null
  message: string
  payload: unknown
  outcome: 'unknown' | null
  status: 'pending' | 'confirmed' | 'rejected' | 'failed' | 'expired' | 'cancelled'
  result: unknown
  error: unknown
  userId: string
  createdAt: string
  createdAtMs: number
  updatedAt: string
  updatedAtMs: number
  expiresAt: string | null
  expiresAtMs: number | null
  confirmedAt: string | null
  confirmedAtMs: number | null
  rejectedAt: string | null
  rejectedAtMs: number | null
  executedAt: string | null
  executedAtMs: number | null
}

/** A file that messages can refer to: `{ type: 'file', fileId: id }`. Some fields are there twice, as other APIs name them. */
export type FileInfo = {
  id: string
  object: 'file'
  name: string | null
  /** As found in the bytes. */
  mediaType: string
  /** In bytes. */
  size: number
  sha256: string
  createdAt: string
  createdAtMs: number
  bytes: number
  filename: string
  created_at: number
  purpose: 'user_data'
}
