// Comparisons: two answers to one question, and the votes on them. They are removed
// together with their conversation.

import type { MessageStateChange } from './message-store.ts'

export type Preference = 'a' | 'b' | 'tie' | 'both_bad'

/** Two answers to one question. Sides (`a` is shown first) are not configurations: `firstSideIsConfigA` maps one to the other. */
export type ComparisonRow = {
  id: string
  conversationId: string
  owner: string
  userMessageId: string
  /** Null if the answer came without a run. A run may be removed before its comparison. */
  runA: string | null
  runB: string | null
  /** The answers; null until both are known. */
  messageA: string | null
  messageB: string | null
  configA: string
  configB: string
  firstSideIsConfigA: boolean
  /** False for a pair that the server detected by itself: it asks for no vote and hides nothing. */
  offered: boolean
  /** `pending`: an answer is still being written. `ready`: a vote is possible. `failed`: no vote will be possible. */
  state: 'pending' | 'ready' | 'failed'
  preference: Preference | null
  preferenceAt: number | null
  /** Votes that were replaced by later ones, oldest first. */
  revisions: { preference: Preference; at: number }[]
  createdAt: number
}

export type ComparisonFilter = {
  owner: string
  conversationId?: string
  /** Only those without a vote. */
  unvoted?: boolean
  state?: ComparisonRow['state'][]
  /** Only those that are older than this comparison. */
  before?: string
  limit: number
}

export type ComparisonOutcome = {
  state: 'ready' | 'failed'
  messageA: string | null
  messageB: string | null
  messageStates: MessageStateChange[]
}

export type ComparisonVote = {
  preference: Preference
  at: number
  /** How many votes the caller saw, replaced ones included. The vote is refused if there are more or fewer. */
  expectVotes: number
  /** The message states after the vote; they decide which answer is part of the history. */
  messageStates: MessageStateChange[]
}

/** How many votes of one kind there are. */
export type VoteCount = Pick<ComparisonRow, 'configA' | 'configB' | 'firstSideIsConfigA'> & {
  preference: Preference
  count: number
}

export interface ComparisonStore {
  /**
   * First removes a comparison of the same two runs that was not offered for a vote. Then, if the owner has a comparison of the
   * same two answers (in either order), returns that one; otherwise stores `row`, applies `messageStates` and returns `row`.
   */
  createComparison(row: ComparisonRow, messageStates: MessageStateChange[]): Promise<ComparisonRow>
  readComparison(id: string): Promise<ComparisonRow | undefined>
  /** The newest comparison that has this run as one of its sides. */
  findComparisonByRun(runId: string): Promise<ComparisonRow | undefined>
  /** Newest first, only offered ones. */
  listComparisons(filter: ComparisonFilter): Promise<ComparisonRow[]>
  /** Comparisons of all owners whose answers are still being written, oldest first. */
  pendingComparisons(limit: number): Promise<ComparisonRow[]>
  /** Pending → ready or failed, once. False if it was settled before, or is gone. */
  settleComparison(id: string, outcome: ComparisonOutcome): Promise<boolean>
  /** Only while it is ready and has as many votes as the caller saw. Returns the row afterwards, and whether this vote counted. */
  voteComparison(id: string, vote: ComparisonVote): Promise<{ voted: boolean; row: ComparisonRow } | undefined>
  /** Votes by configurations, sides and preference, of one owner or of all (null). Replaced votes do not count. */
  countVotes(owner: string | null): Promise<VoteCount[]>
}
