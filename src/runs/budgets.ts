// Budgets: how much a run, a user on one day, and the whole server on one day may use. They
// are checked when a run is accepted and before each step, so the last step may exceed them.
// A budget in dollars counts only steps whose cost is known; one in tokens counts all.

import { AppError } from '../errors/app-error.ts'
import type { NewEvent } from '../journal/event.ts'
import { diagnosticCodes } from '../journal/diagnostic-codes.ts'
import type { RunState } from '../journal/run-state.ts'
import { usageDay, type UsageTotals } from '../journal/usage.ts'
import { type Clock, isoTime } from '../kit/clock.ts'
import type { UsageStore } from '../stores/usage-store.ts'

/** Null means no limit. */
export type Budget = { microUsd: number | null; tokens: number | null }

export type BudgetLimits = { run: Budget; userDay: Budget; day: Budget }

export type BudgetScope = keyof BudgetLimits

export type BudgetDependencies = {
  store: Pick<UsageStore, 'sumUsage' | 'sumUsageOfDay'>
  clock: Clock
  limits: { budgets?: BudgetLimits | undefined }
}

/** How much of a budget is used. */
type Fill = { scope: BudgetScope; unit: 'usd' | 'tokens'; used: number; limit: number }

/** From this share on, a run that uses the budget gets a warning. */
const warningShare = 0.8

const settings: Readonly<Record<BudgetScope, string>> = {
  run: 'POLYLOG_BUDGET_RUN',
  userDay: 'POLYLOG_BUDGET_USER_DAY',
  day: 'POLYLOG_BUDGET_DAY',
}

/** Whether anything is limited. */
export function hasBudgets({ budgets }: BudgetDependencies['limits']): boolean {
  return budgets !== undefined && Object.values(budgets).some(isLimited)
}

/** Throws `budget_exceeded` if the user, or the whole server, has used up the budget of this day. */
export async function checkDayBudgets(owner: string, dependencies: BudgetDependencies): Promise<void> {
  refuseExceeded(await dayFills(owner, dependencies), dependencies.clock)
}

/**
 * To be called before a step. Throws `budget_exceeded`; otherwise returns a `diagnostic` for each budget that is nearly used and
 * for which this run has none yet.
 */
export async function checkStepBudgets(state: RunState, dependencies: BudgetDependencies): Promise<NewEvent[]> {
  const { budgets } = dependencies.limits
  if (budgets === undefined) return []
  const fills = [
    ...fillsOf('run', budgets.run, state.usage),
    ...(await dayFills(state.accepted?.owner ?? 'anonymous', dependencies)),
  ]
  refuseExceeded(fills, dependencies.clock)
  return fills
    .filter(({ scope, used, limit }) => used >= limit * warningShare && !state.budgetWarnings.has(scope))
    .filter(({ scope }, index, all) => all.findIndex((fill) => fill.scope === scope) === index)
    .map(({ scope, unit }) => ({
      type: 'diagnostic',
      data: {
        code: diagnosticCodes.budgetNearlyUsed,
        message: `More than ${warningShare * 100} % of ${nameOf(scope)} is used.`,
        details: { scope, unit },
      },
    }))
}

async function dayFills(owner: string, { store, clock, limits }: BudgetDependencies): Promise<Fill[]> {
  const { budgets } = limits
  if (budgets === undefined || !(isLimited(budgets.userDay) || isLimited(budgets.day))) return []
  const today = usageDay(clock.now())
  const fills: Fill[] = []
  if (isLimited(budgets.userDay)) {
    fills.push(...fillsOf('userDay', budgets.userDay, await store.sumUsage({ owner, from: today, to: today })))
  }
  if (isLimited(budgets.day)) fills.push(...fillsOf('day', budgets.day, await store.sumUsageOfDay(today)))
  return fills
}

function isLimited({ microUsd, tokens }: Budget): boolean {
  return microUsd !== null || tokens !== null
}

function fillsOf(scope: BudgetScope, { microUsd, tokens }: Budget, usage: UsageTotals): Fill[] {
  const fills: Fill[] = []
  if (microUsd !== null) fills.push({ scope, unit: 'usd', used: usage.costMicroUsd ?? 0, limit: microUsd })
  if (tokens !== null) {
    fills.push({ scope, unit: 'tokens', used: usage.inputTokens + usage.outputTokens, limit: tokens })
  }
  return fills
}

function refuseExceeded(fills: readonly Fill[], clock: Clock): void {
  const exceeded = fills.find(({ used, limit }) => used >= limit)
  if (exceeded === undefined) return
  const { scope, unit } = exceeded
  const setting = `${settings[scope]}_${unit === 'usd' ? 'USD' : 'TOKENS'}`
  if (scope === 'run') {
    throw new AppError(
      'budget_exceeded',
      `The run has used its budget and was stopped. Ask for less at once, or raise ${setting}.`,
      { details: { scope, unit, resetsAt: null } },
    )
  }
  const now = clock.now()
  const resetsAt = Date.parse(usageDay(now)) + 86_400_000
  // Without the sums: those of the whole server are not for every user.
  throw new AppError(
    'budget_exceeded',
    `${capitalized(nameOf(scope))} is used up. It resets at ${isoTime(resetsAt)}; until then, no run can start or go on.`,
    {
      details: {
        scope,
        unit,
        resetsAt: isoTime(resetsAt),
        retryAfterSeconds: Math.max(1, Math.ceil((resetsAt - now) / 1000)),
      },
    },
  )
}

function nameOf(scope: BudgetScope): string {
  if (scope === 'run') return 'the budget of this run'
  return scope === 'userDay' ? 'your budget of this day' : 'the server’s budget of this day'
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
