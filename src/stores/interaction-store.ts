// Interactions: questions to a person. Runs create and close them together with
// their events (see `RunWrite`); this part reads them and decides each of them once.

import type { ErrorValue } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import type { RowPage } from './row-page.ts'

export type InteractionStatus = 'pending' | 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired' | 'closed'

/** One question to a person. Other connections and nodes decide on the row; the run's owner writes the decision to the journal. */
export type InteractionRow = {
  id: string
  number: number
  runId: string
  owner: string
  conversationId: string | null
  kind: 'confirmation' | 'question' | 'client_tool'
  callId: string | null
  toolName: string | null
  prompt: string
  /** What was shown; a decision applies to exactly this, or to the edit that came with it. */
  input: JsonValue
  outcome: 'unknown' | null
  status: InteractionStatus
  /** Arguments as edited while confirming, or the reply to a question. */
  response: JsonValue | null
  reason: string | null
  decidedBy: string | null
  decidedAt: number | null
  /** Filled in when the confirmed call has run. */
  result: JsonValue | null
  error: ErrorValue | null
  executedAt: number | null
  deadlineAt: number | null
  atDeadline: 'expire' | 'auto_decide' | null
  /** Identifies the reply that decided it, so that a repeated reply is recognised; null if it came without a key. */
  reply: ReplyKey | null
  createdAt: number
  updatedAt: number
}

type ReplyKey = { key: string; fingerprint: string }

export type Decision = {
  status: 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired'
  by: string
  at: number
  response?: JsonValue
  reason?: string
  reply?: ReplyKey
}

/** What a run changes later: the outcome of a confirmed call, or that a pending interaction was closed with its run. */
export type InteractionUpdate = {
  id: string
  /** Applies only if the row is still pending. */
  closePending?: boolean
  result?: JsonValue | null
  error?: ErrorValue | null
  /** As `error`, and applies only if the row is confirmed: the run ended before it ran the call. */
  errorIfConfirmed?: ErrorValue | null
  executedAt?: number
  at: number
}

export type InteractionFilter = {
  owner: string
  runId?: string
  conversationId?: string
  status?: InteractionStatus[]
  kind?: InteractionRow['kind']
  /** True: only those whose call ran and gave an error. False: only the others. */
  failed?: boolean
  /** Only those that were created before this one. */
  before?: string
  limit: number
}

export interface InteractionStore {
  readInteraction(id: string): Promise<InteractionRow | undefined>
  /** Newest first. */
  listInteractions(filter: InteractionFilter): Promise<RowPage<InteractionRow>>
  interactionsOf(runId: string): Promise<InteractionRow[]>
  /**
   * Pending → decided, once: only while the row is pending and (unless the decision is `expired` or `auto_decided`) its deadline
   * lies after `decision.at`. Wakes the run: it is claimable from then on until it is claimed, also if its owner parks it later.
   * Returns the row as it is afterwards, and whether this call decided it.
   */
  decide(id: string, decision: Decision): Promise<{ decided: boolean; row: InteractionRow } | undefined>
}
