// Reads the runs table: turns rows into RunRows.

import type { RunStatus } from '../../journal/event.ts'
import type { RowPage } from '../row-page.ts'
import type { RunFilter, RunRow } from '../run-store.ts'
import { rowReader } from './columns.ts'
import type { Db, Row } from './connection.ts'
import { filterOf } from './filter.ts'
import { readPage } from './row-page.ts'

/** Spelled as in the partial indexes. */
export const unfinished = "status IN ('queued', 'running', 'waiting_user')"

const toFields = rowReader<Omit<RunRow, 'cancel' | 'needs'>>({
  id: 'value',
  owner: 'value',
  family: 'value',
  agentId: 'value',
  conversationId: 'value',
  skillId: 'value',
  status: 'value',
  attempt: 'value',
  epoch: 'value',
  leaseOwner: 'value',
  leaseUntil: 'value',
  wakeAt: 'value',
  lastSeq: 'value',
  createdAt: 'value',
  startedAt: 'value',
  endedAt: 'value',
  error: 'json',
  engine: 'value',
  usage: 'json',
})

export function toRunRow(row: Row): RunRow {
  const { cancel_by: by, cancel_reason: reason, cancel_at: at } = row
  const cancel = at == null ? null : { by: by as string, reason: reason as string | null, at: at as number }
  return { ...toFields(row), cancel, needs: (row['needs'] ?? []) as unknown as string[] }
}

export async function readRun(db: Db, id: string): Promise<RunRow | undefined> {
  const row = await db.get('SELECT * FROM runs WHERE id = ?', id)
  return row === undefined ? undefined : toRunRow(row)
}

export async function listRuns(db: Db, filter: RunFilter): Promise<RowPage<RunRow>> {
  const { where, values } = filterOf(
    ['owner = ?', filter.owner],
    ['conversation_id = ?', filter.conversationId],
    ['family = ?', filter.family],
    ['skill_id = ?', filter.skillId],
    ['status = ANY (?)', filter.status],
    ['position < (SELECT position FROM runs WHERE id = ?)', filter.before],
  )
  const sql = `SELECT * FROM runs WHERE ${where} ORDER BY position DESC`
  return await readPage(db, { sql, values, limit: filter.limit, long: ['error', 'usage', 'cancel_reason'] }, toRunRow)
}

export async function listOpenRuns(db: Db, limit: number): Promise<RunRow[]> {
  const rows = await db.all(`SELECT * FROM runs WHERE ${unfinished} ORDER BY position LIMIT ?`, limit)
  return rows.map(toRunRow)
}

export async function openRuns(db: Db, conversationId: string): Promise<RunRow[]> {
  const rows = await db.all(
    `SELECT * FROM runs WHERE conversation_id = ? AND ${unfinished} ORDER BY position`,
    conversationId,
  )
  return rows.map(toRunRow)
}

export async function findIdempotent(
  db: Db,
  owner: string,
  route: string,
  key: string,
): Promise<{ runId: string; fingerprint: string; reused: boolean } | undefined> {
  const row = await db.get(
    'SELECT run_id, fingerprint, reused FROM idempotency_keys WHERE owner = ? AND route = ? AND key = ?',
    owner,
    route,
    key,
  )
  if (row === undefined) return undefined
  return { runId: row['run_id'] as string, fingerprint: row['fingerprint'] as string, reused: row['reused'] === 1 }
}

export async function findCached(db: Db, owner: string, cacheKey: string): Promise<string | undefined> {
  const row = await db.get(
    `SELECT id FROM runs WHERE owner = ? AND cache_key = ? AND status = 'succeeded' ORDER BY position DESC LIMIT 1`,
    owner,
    cacheKey,
  )
  return row?.['id'] as string | undefined
}

export async function msUntilWake(db: Db, node: string): Promise<number | null> {
  const row = await db.get(
    `SELECT least(
       (SELECT min(wake_at) FROM runs WHERE status = 'waiting_user' AND lease_owner IS NULL),
       (SELECT min(wake_at) FROM runs WHERE held = 1 AND status = 'queued' AND lease_owner IS NULL),
       (SELECT min(lease_until) FROM runs WHERE lease_owner IS NOT NULL AND lease_owner <> ?)) - polylog_now() AS ms`,
    node,
  )
  const ms = (row?.['ms'] ?? null) as number | null
  return ms === null ? null : Math.max(0, ms)
}

/** The first claim after a crash writes the row. */
export async function msSinceCrash(db: Db): Promise<number> {
  const row = await db.get('SELECT polylog_now() - at AS ms FROM database_starts')
  return Math.max(0, (row?.['ms'] ?? 0) as number)
}

export async function countRuns(db: Db): Promise<Partial<Record<RunStatus, number>>> {
  const rows = await db.all('SELECT status, sum(count) AS count FROM run_counts GROUP BY status HAVING sum(count) > 0')
  return Object.fromEntries(rows.map((row) => [row['status'] as RunStatus, row['count'] as number]))
}
