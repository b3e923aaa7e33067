// What a family of routes asks of a run, in words that all families share.

import type { JsonValue } from '../journal/event.ts'

export type WhenBusy = 'queue' | 'reject' | 'cancel'

/** A message that the client sent along. Calls in it were made elsewhere: they are history, and never executed. */
export type EarlierMessage =
  | { role: 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: { callId: string; name: string; input: JsonValue }[] }
  | { role: 'tool'; callId: string; name: string; content: string }

export type StartRequest = {
  owner: string
  family: string
  input: string
  /** Earlier messages that the client sent along; they count only if the conversation has no history of its own. */
  earlier: EarlierMessage[]
  /** `earlier` ends with tool results, and the model goes on from them; `input` is empty. */
  continues?: true
  /** What the caller tells the model about how to answer, beside the agent's own instructions. */
  instructions?: string
  agentId?: string
  /** The client's name for the conversation, or an id that the server minted; see `conversation-names.ts`. */
  conversationId?: string
  /** The same, and a second name if `conversationId` is given too. */
  sessionId?: string
  /** An id that the family minted for a conversation that is new; then the two above are absent. */
  newConversationId?: string
  context?: Record<string, unknown>
  model?: string
  temperature?: number
  maxTokens?: number
  onDisconnect?: 'continue' | 'cancel'
  /** The name of a model configuration; null is the default one. Absent: none, only the agent's own settings. */
  config?: string | null
  /** Answer the last question of the conversation again; `input` and `earlier` do not count. */
  regenerate?: true
  variant?: 'shadow'
  /** When the client sent the question, by its own clock; the same again with the same question is a second answer to it. */
  sentAt?: number
  /** Where the run may work on files; `dir` is a name that `Workspaces.open` gave. */
  workspace?: { dir: string; mode: 'edit' | 'ask' }
  /** `refuse`: the family's wire cannot ask a person; see `RunSpec.consent`. */
  consent?: 'refuse'
  /** For a conversation that has no title; else its first words are taken. */
  title?: string
  whenBusy: WhenBusy
  idempotency: { key: string; route: string; body: unknown } | null
}
