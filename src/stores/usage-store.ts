// Token counts and cost of finished steps, summed for each day, user, agent and model. The
// sums are written by the same append as their steps (`RunWrite.usage`) and stay when the
// runs are removed. Those of a conversation are removed together with it.

import type { UsageGrouping, UsageTotals } from '../journal/usage.ts'
import type { RowPage } from './row-page.ts'

/** The usage of one step. */
export type StepUsage = {
  owner: string
  /** The UTC day on which the step ended, as `2026-11-16`. */
  day: string
  agentId: string
  model: string
  conversationId: string | null
  totals: UsageTotals
}

/** `key` is the user, agent, model or day that the group is about. */
export type UsageGroup = { key: string; totals: UsageTotals }

/** Both days are included. */
export type UsagePeriod = { from: string; to: string }

/**
 * How many pairs of agent and model are counted separately for a user on one day; the model of a further pair is counted as
 * `otherModels`. Bounded because some servers accept any model name.
 */
export const usagePairsMax = 100
export const otherModels = 'other'

export interface UsageStore {
  /** The groups of one owner, ordered by key. */
  listUsage(
    filter: UsagePeriod & { owner: string; groupBy: UsageGrouping; after?: string; limit: number },
  ): Promise<RowPage<UsageGroup>>
  /** The sums of one owner. */
  sumUsage(filter: UsagePeriod & { owner: string }): Promise<UsageTotals>
  /** The sums of all owners on one day. */
  sumUsageOfDay(day: string): Promise<UsageTotals>
  /** Undefined if no step has ended in the conversation. */
  usageOfConversation(conversationId: string): Promise<UsageTotals | undefined>
}
