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
  /** Adds to a sum. A cost that is not known changes no sum; see `sums`. */
  const addition = (name: (typeof sums)[number], value: string) =>
    name === 'cost'
      ? `cost = CASE WHEN ${value} IS NULL THEN cost ELSE coalesce(cost, 0) + ${value} END`
      : `${name} = ${name} + ${value}`
  const added = sums.map((name) => addition(name, `excluded.${name}`)).join(', ')
  const adding = (table: string, key: readonly string[]) => {
    const columns = [...key, ...sums]
    return db.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${added}`,
    )
  }
  const toDay = adding('usage_days', ['owner', 'day', 'agent_id', 'model'])
  /** Adds to the row of a model, if there is one: the case of nearly every step. */
  const toKnownDay = db.prepare(
    `UPDATE usage_days SET ${sums.map((name, index) => addition(name, `?${index + 1}`)).join(', ')}
     WHERE owner = ?9 AND day = ?10 AND agent_id = ?11 AND model = ?12`,
  )
  const toTotal = adding('usage_totals', ['day'])
  const toConversation = adding('usage_conversations', ['conversation_id'])
  const pairs = db.prepare('SELECT count(*) AS count FROM usage_days WHERE owner = ? AND day = ?')

  return {
    add(step: StepUsage): void {
      const { owner, day, agentId, model, conversationId } = step
      const values = valuesOf(step.totals)
      if (toKnownDay.run(...values, owner, day, agentId, model).changes === 0) {
        const isCountedSeparately = Number(pairs.get(owner, day)?.count) < usagePairsMax
        toDay.run(owner, day, agentId, isCountedSeparately ? model : otherModels, ...values)
      }
      toTotal.run(day, ...values)
      if (conversationId !== null) toConversation.run(conversationId, ...values)
    },
  }
}
