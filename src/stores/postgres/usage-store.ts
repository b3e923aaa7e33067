// The sums of token counts and cost, as one row for each day, user, agent and model, a few for
// each day, and one for each conversation. Steps are added to them by their append.

import type { UsageGrouping, UsageTotals } from '../../journal/usage.ts'
import { otherModels, type StepUsage, usagePairsMax, type UsageStore } from '../usage-store.ts'
import type { Db, Row, Value } from './connection.ts'
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

function toTotals(row: Row | undefined): UsageTotals {
  const number = (name: string) => (row?.[name] ?? 0) as number
  return {
    steps: number('steps'),
    inputTokens: number('input'),
    cachedTokens: number('cached'),
    cacheWriteTokens: number('cache_write'),
    outputTokens: number('output'),
    reasoningTokens: number('reasoning'),
    costMicroUsd: (row?.['cost'] ?? null) as number | null,
    unpricedSteps: number('unpriced'),
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

export function usageStore({ read }: PartAccess): UsageStore {
  return {
    listUsage: ({ owner, from, to, groupBy, after = '', limit }) =>
      read((db) => {
        const column = keyColumns[groupBy]
        const sql = `SELECT ${column} AS key, ${summed} FROM usage_days
          WHERE owner = ? AND day BETWEEN ? AND ? AND ${column} > ? GROUP BY ${column} ORDER BY ${column}`
        const query = { sql, values: [owner, from, to, after], limit, long: [] }
        return readPage(db, query, (row) => ({ key: row['key'] as string, totals: toTotals(row) }))
      }),
    sumUsage: ({ owner, from, to }) =>
      read(async (db) =>
        toTotals(
          await db.get(`SELECT ${summed} FROM usage_days WHERE owner = ? AND day BETWEEN ? AND ?`, owner, from, to),
        ),
      ),
    sumUsageOfDay: (day) =>
      read(async (db) => toTotals(await db.get(`SELECT ${summed} FROM usage_totals WHERE day = ?`, day))),
    usageOfConversation: (id) =>
      read(async (db) => {
        const row = await db.get('SELECT * FROM usage_conversations WHERE conversation_id = ?', id)
        return row === undefined ? undefined : toTotals(row)
      }),
  }
}

/** Adds to a row. A cost that is not known changes no sum. `shard`: one of a few rows, so that not all appends wait for one. */
function adding(table: string, key: readonly string[], shard = false): string {
  const added = sums.map((name) =>
    name === 'cost'
      ? `cost = CASE WHEN excluded.cost IS NULL THEN ${table}.cost ELSE coalesce(${table}.cost, 0) + excluded.cost END`
      : `${name} = ${table}.${name} + excluded.${name}`,
  )
  const names = [...key, ...sums, ...(shard ? ['shard'] : [])]
  const marks = [...key, ...sums].map(() => '?').concat(shard ? ['pg_backend_pid() % 64'] : [])
  const conflict = [...key, ...(shard ? ['shard'] : [])].join(', ')
  return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks.join(', ')})
    ON CONFLICT (${conflict}) DO UPDATE SET ${added.join(', ')}`
}

const toDay = adding('usage_days', ['owner', 'day', 'agent_id', 'model'])
const toTotal = adding('usage_totals', ['day'], true)
const toConversation = adding('usage_conversations', ['conversation_id'])

async function isCountedSeparately(db: Db, { owner, day, agentId, model }: StepUsage): Promise<boolean> {
  const known = await db.get(
    'SELECT steps FROM usage_days WHERE owner = ? AND day = ? AND agent_id = ? AND model = ?',
    owner,
    day,
    agentId,
    model,
  )
  if (known !== undefined) return true
  const pairs = await db.get('SELECT count(*) AS count FROM usage_days WHERE owner = ? AND day = ?', owner, day)
  return Number(pairs?.['count']) < usagePairsMax
}

export async function addStepUsage(db: Db, step: StepUsage): Promise<void> {
  const { owner, day, agentId, conversationId } = step
  const values = valuesOf(step.totals)
  const model = (await isCountedSeparately(db, step)) ? step.model : otherModels
  await db.run(toDay, owner, day, agentId, model, ...values)
  await db.run(toTotal, day, ...values)
  if (conversationId !== null) await db.run(toConversation, conversationId, ...values)
}
