// The sums of token counts and cost, as one row for each day, user, agent and model, one for
// each day, and one for each conversation. Steps are added to them by their append.

import type { DatabaseSync } from 'node:sqlite'
import type { UsageGrouping, UsageTotals } from '../../journal/usage.ts'
import { otherModels, type StepUsage, type UsageGroup, usagePairsMax, type UsageStore } from '../usage-store.ts'
import type { Row, Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

/** The sums that every table has. `cost` is NULL if no step has a known cost. */
const sums = ['steps', 'input', 'cached', 'cache_write', 'output', 'reasoning', 'cost', 'unpriced'] as const

const summed = sums.map((name) => `sum(${name}) AS ${name}`).join(', ')

const keyColumns: Readonly<Record<UsageGrouping, string>> = {
  user: 'owner',
  agent: 'agent_id',
  model: 'model',
  day: 'day',
}

function toTotals(row: Row): UsageTotals {
  return {
    steps: (row.steps ?? 0) as number,
    inputTokens: (row.input ?? 0) as number,
    cachedTokens: (row.cached ?? 0) as number,
    cacheWriteTokens: (row.cache_write ?? 0) as number,
    outputTokens: (row.output ?? 0) as number,
    reasoningTokens: (row.reasoning ?? 0) as number,
    costMicroUsd: row.cost as number | null,
    unpricedSteps: (row.unpriced ?? 0) as number,
  }
}

function valuesOf(totals: UsageTotals): Value[] {
  return [
    totals.steps,
    totals.inputTokens,
    totals.cachedTokens,
    totals.cacheWriteTokens,
    totals.outputTokens,
    totals.reasoningTokens,
    totals.costMicroUsd,
    totals.unpricedSteps,
  ]
}

export function usageStore({ db, read }: PartAccess): UsageStore {
  const groups = Object.fromEntries(
    Object.entries(keyColumns).map(([grouping, column]) => [
      grouping,
      db.prepare(
        `SELECT ${column} AS key, ${summed} FROM usage_days
         WHERE owner = ? AND day BETWEEN ? AND ? AND ${column} > ? GROUP BY ${column} ORDER BY ${column} LIMIT ?`,
      ),
    ]),
  ) as Record<UsageGrouping, ReturnType<DatabaseSync['prepare']>>
  const ofOwner = db.prepare(`SELECT ${summed} FROM usage_days WHERE owner = ? AND day BETWEEN ? AND ?`)
  const ofDay = db.prepare(`SELECT ${summed} FROM usage_totals WHERE day = ?`)
  const ofConversation = db.prepare('SELECT * FROM usage_conversations WHERE conversation_id = ?')
  const toGroup = (row: Row): UsageGroup => ({ key: row.key as string, totals: toTotals(row) })

  return {
    listUsage: ({ owner, from, to, groupBy, after = '', limit }) =>
      read(() => readPage(groups[groupBy], [owner, from, to, after], limit, toGroup)),
    sumUsage: ({ owner, from, to }) => read(() => toTotals(ofOwner.get(owner, from, to) as Row)),
    sumUsageOfDay: (day) => read(() => toTotals(ofDay.get(day) as Row)),
    usageOfConversation: (id) =>
      read(() => {
        const row = ofConversation.get(id)
        return row === undefined ? undefined : toTotals(row)
      }),
  }
}

export type UsageWriter = ReturnType<typeof usageWriter>

export function usageWriter(db: DatabaseSync) {
  /** Adds to a row. A cost that is not known changes no sum; see `sums`. */
  const added = sums
    .map((name) =>
      name === 'cost'
        ? 'cost = CASE WHEN excluded.cost IS NULL THEN cost ELSE coalesce(cost, 0) + excluded.cost END'
        : `${name} = ${name} + excluded.${name}`,
    )
    .join(', ')
  const adding = (table: string, key: readonly string[]) => {
    const columns = [...key, ...sums]
    return db.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${added}`,
    )
  }
  const toDay = adding('usage_days', ['owner', 'day', 'agent_id', 'model'])
  const toTotal = adding('usage_totals', ['day'])
  const toConversation = adding('usage_conversations', ['conversation_id'])
  const known = db.prepare('SELECT 1 FROM usage_days WHERE owner = ? AND day = ? AND agent_id = ? AND model = ?')
  const pairs = db.prepare('SELECT count(*) AS count FROM usage_days WHERE owner = ? AND day = ?')

  function isCountedSeparately({ owner, day, agentId, model }: StepUsage): boolean {
    if (known.get(owner, day, agentId, model) !== undefined) return true
    return Number(pairs.get(owner, day)?.count) < usagePairsMax
  }

  return {
    add(step: StepUsage): void {
      const { owner, day, agentId, conversationId } = step
      const values = valuesOf(step.totals)
      toDay.run(owner, day, agentId, isCountedSeparately(step) ? step.model : otherModels, ...values)
      toTotal.run(day, ...values)
      if (conversationId !== null) toConversation.run(conversationId, ...values)
    },
  }
}
