// What a user has used: token counts and cost, grouped and bounded.

import { AppError } from '../errors/app-error.ts'
import { usageDay, type UsageGrouping, type UsageTotals } from '../journal/usage.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { UsageGroup, UsagePeriod, UsageStore } from '../stores/usage-store.ts'

export type UsageRequest = {
  /** Days as `2026-11-16`. `to` is today if it is absent, and `from` is 29 days before `to`. */
  from?: string | undefined
  to?: string | undefined
  groupBy: UsageGrouping
  after?: string | undefined
  limit: number
}

export type UsageReport = UsagePeriod & { total: UsageTotals; groups: RowPage<UsageGroup> }

const day = 86_400_000
const daysDefault = 30
/** Bounded, because the rows of all days are added up when they are asked for. */
const daysMax = 366

export class UsageService {
  private readonly store: UsageStore
  private readonly clock: Clock

  constructor(store: UsageStore, clock: Clock) {
    this.store = store
    this.clock = clock
  }

  async report(owner: string, request: UsageRequest): Promise<UsageReport> {
    const to = request.to ?? usageDay(this.clock.now())
    const from = request.from ?? usageDay(Date.parse(to) - (daysDefault - 1) * day)
    const days = (Date.parse(to) - Date.parse(from)) / day + 1
    if (days < 1) throw new AppError('invalid_request', '"from" is after "to". Exchange them.')
    if (days > daysMax) {
      throw new AppError('invalid_request', `The report covers at most ${daysMax} days. Ask for a shorter period.`)
    }
    const { groupBy, after, limit } = request
    const [total, groups] = await Promise.all([
      this.store.sumUsage({ owner, from, to }),
      this.store.listUsage({ owner, from, to, groupBy, limit, ...defined({ after }) }),
    ])
    return { from, to, total, groups }
  }

  /** Null if no step has ended in the conversation. The caller must have checked that it may be read. */
  async ofConversation(conversationId: string): Promise<UsageTotals | null> {
    return (await this.store.usageOfConversation(conversationId)) ?? null
  }
}
