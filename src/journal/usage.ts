// Token counts and cost, summed over steps. Dialects, rows and reports use the same sums,
// so they cannot differ.
//
// `inputTokens` includes the cached and cache-written ones, and `outputTokens` includes the
// reasoning. The cost of a step is known only if its model is in the price table; an unknown
// cost is never counted as 0.

import type { EventData, Usage } from './event.ts'

export type UsageTotals = {
  steps: number
  inputTokens: number
  /** Read from the provider's prompt cache. */
  cachedTokens: number
  /** Written to the provider's prompt cache. */
  cacheWriteTokens: number
  outputTokens: number
  reasoningTokens: number
  /** In millionths of a US dollar, over the steps whose cost is known; null if there is none. */
  costMicroUsd: number | null
  /** Steps whose cost is not known. */
  unpricedSteps: number
}

/** More tokens than any step can have. Sums over millions of steps are still exact. */
const tokensMax = 1_000_000_000

/** Whether a provider or a remote agent reported a usable count. A wrong one, kept, would break every sum over it. */
export function isTokenCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= tokensMax
}

/** What a report may add up. */
export const usageGroupings = ['user', 'agent', 'model', 'day'] as const

export type UsageGrouping = (typeof usageGroupings)[number]

export const noUsage: Readonly<UsageTotals> = {
  steps: 0,
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  costMicroUsd: null,
  unpricedSteps: 0,
}

export function usageOfStep({
  usage,
  costMicroUsd,
}: Pick<EventData<'step.done'>, 'usage' | 'costMicroUsd'>): UsageTotals {
  return {
    steps: 1,
    inputTokens: usage?.inputTokens ?? 0,
    cachedTokens: usage?.cachedTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    reasoningTokens: usage?.reasoningTokens ?? 0,
    costMicroUsd: costMicroUsd ?? null,
    unpricedSteps: costMicroUsd === undefined ? 1 : 0,
  }
}

export function addUsage(a: UsageTotals, b: UsageTotals): UsageTotals {
  return {
    steps: a.steps + b.steps,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costMicroUsd:
      a.costMicroUsd === null && b.costMicroUsd === null ? null : (a.costMicroUsd ?? 0) + (b.costMicroUsd ?? 0),
    unpricedSteps: a.unpricedSteps + b.unpricedSteps,
  }
}

/** The sum of two reports about one answer. */
export function sumOfReports(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const sum: Usage = { ...one }
  for (const [name, count] of Object.entries(other) as [keyof Usage, number][]) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** False if no provider reported any tokens, so that the sums say nothing. */
export function isReported({ inputTokens, outputTokens }: UsageTotals): boolean {
  return inputTokens > 0 || outputTokens > 0
}

/** The day of a time in UTC, as `2026-11-16`. */
export function usageDay(at: number): string {
  const number = Math.floor(at / dayMs)
  // Nearly all calls are about today, and formatting a date takes longer than the rest of a step's accounting.
  if (number !== lastDay.number) lastDay = { number, text: new Date(at).toISOString().slice(0, 10) }
  return lastDay.text
}

const dayMs = 86_400_000
let lastDay = { number: Number.NaN, text: '' }
