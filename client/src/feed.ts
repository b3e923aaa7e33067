// The feed of a user: what changes, over one connection. The iteration opens it again whenever it is lost, after the last
// frame that it gave out, and never ends by itself. Frames may repeat a state; none is lost.

import type { Conversation, RunInfo } from './api.ts'
import { reopening, type StreamOptions } from './run.ts'
import type { Transport } from './transport.ts'

/** A question that waits, or waited, for a decision. */
export type Interaction = {
  id: string
  runId: string
  conversationId: string | null
  kind: 'confirmation' | 'question' | 'client_tool'
  status: 'pending' | 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired' | 'closed'
  toolCallId: string | null
  toolName: string | null
  message: string
  /** Null if it is long: read the confirmation. */
  payload: unknown
  outcome: 'unknown' | null
  reason: string | null
  decidedBy: string | null
  createdAt: string
  createdAtMs: number
  expiresAt: string | null
  expiresAtMs: number | null
  decidedAt: string | null
  decidedAtMs: number | null
  executedAt: string | null
  executedAtMs: number | null
}

/** Two answers to one question. The configurations are null before the vote. */
export type Comparison = {
  comparison_id: string
  conversation_id: string
  user_prompt_mid: string
  response_a_mid: string | null
  response_b_mid: string | null
  trace_a: string | null
  trace_b: string | null
  state: 'pending' | 'ready' | 'failed'
  preference: 'a' | 'b' | 'tie' | 'both_bad' | null
  preference_ts: string | null
  revisions: { preference: string; preference_ts: string }[]
  created_at: string
  config_a_id: string | null
  config_b_id: string | null
  is_config_a_first: boolean | null
  side_a_config: string | null
  side_b_config: string | null
}

export type FeedRun = RunInfo & {
  family: string
  skillId: string | null
  /** What a run with the status `awaiting_input` waits for. */
  waitingFor: { interactionId: string; kind: Interaction['kind']; toolName: string | null }[]
}

/** `cursor` resumes after this frame; null if only an earlier frame can be resumed after. */
export type FeedFrame = { cursor: string | null } & (
  | { type: 'hello'; cursor: string; resumed: boolean }
  | { type: 'conversation.changed'; conversation: Conversation }
  | { type: 'conversation.deleted'; conversationId: string }
  | { type: 'run.changed'; run: FeedRun }
  | { type: 'run.deleted'; runId: string }
  | { type: 'interaction.opened' | 'interaction.decided'; interaction: Interaction }
  | { type: 'comparison.opened' | 'comparison.voted'; comparison: Comparison }
  | { type: 'reset'; reason: 'expired' | 'unknown'; cursor: string }
)

/** Without `after` the feed begins now: read your lists after `hello`, and again after each `reset`. */
export async function* feedOf(
  transport: Transport,
  { after, ...options }: StreamOptions = {},
): AsyncGenerator<FeedFrame, void, undefined> {
  let cursor = after
  for await (const { id, value } of reopening(transport, '/v1/feed', { ...options, cursor: () => cursor })) {
    cursor = id ?? cursor
    const frame = value as FeedFrame | { type: 'ping' }
    if (frame.type !== 'ping') yield { ...frame, cursor: id ?? null } as FeedFrame
  }
}
