// Reads the runs table: turns rows into RunRows, and holds the queries that both threads use.

import type { DatabaseSync } from 'node:sqlite'
import type { ErrorValue } from '../../errors/app-error.ts'
import type { RunStatus } from '../../journal/event.ts'
import type { UsageTotals } from '../../journal/usage.ts'
import type { RowPage } from '../row-page.ts'
import type { RunFilter, RunRow } from '../run-store.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson } from './json-column.ts'
import { readPage } from './row-page.ts'

/** Must be spelled exactly as in the partial indexes, or SQLite does not use them. */
export const unfinished = "status IN ('queued', 'running', 'waiting_user')"

export function toRunRow(row: Row): RunRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    family: row.family as string,
    agentId: row.agent_id as string,
    conversationId: row.conversation_id as string | null,
    skillId: row.skill_id as string | null,
    status: row.status as RunStatus,
    attempt: row.attempt as number,
    epoch: row.epoch as number,
    leaseOwner: row.lease_owner as string | null,
    leaseUntil: row.lease_until as number | null,
    wakeAt: row.wake_at as number | null,
    lastSeq: row.last_seq as number,
    cancel:
      row.cancel_at === null
        ? null
        : { by: row.cancel_by as string, reason: row.cancel_reason as string | null, at: row.cancel_at as number },
    createdAt: row.created_at as number,
    startedAt: row.started_at as number | null,
    endedAt: row.ended_at as number | null,
    error: fromJson<ErrorValue>(row.error),
    engine: row.engine as string | null,
    usage: fromJson<UsageTotals>(row.usage),
    needs: fromJson<string[]>(row.needs) ?? [],
  }
}

/** Returns rows as they are on disk, whose `lastSeq` may lag behind the journal. Callers correct it from their in-memory state. */
export function runReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const byId = db.prepare('SELECT * FROM runs WHERE id = ?')
  const openInConversation = db.prepare(
    `SELECT * FROM runs WHERE conversation_id = ? AND ${unfinished} ORDER BY position`,
  )
  const openOfAll = db.prepare(`SELECT * FROM runs WHERE ${unfinished} ORDER BY position LIMIT ?`)
  const idempotent = db.prepare(
    'SELECT run_id, fingerprint, reused FROM idempotency_keys WHERE owner = ? AND route = ? AND key = ?',
  )
  const earliestWake = db.prepare(
    `SELECT min(at) AS at FROM (
       SELECT min(wake_at) AS at FROM runs WHERE status = 'waiting_user' AND lease_owner IS NULL AND wake_at IS NOT NULL
       UNION ALL
       SELECT min(wake_at) AS at FROM runs WHERE held = 1 AND status = 'queued' AND lease_owner IS NULL AND wake_at IS NOT NULL)`,
  )
  const earliestLeaseEnd = db.prepare(
    'SELECT min(lease_until) AS at FROM runs WHERE lease_owner IS NOT NULL AND lease_owner <> ?',
  )
  const cached = db.prepare(
    `SELECT id FROM runs WHERE owner = ? AND cache_key = ? AND status = 'succeeded' ORDER BY position DESC LIMIT 1`,
  )
  const counts = db.prepare('SELECT status, count FROM run_counts WHERE count > 0')
  const blobCount = db.prepare('SELECT count(*) AS count FROM blobs WHERE run_id = ? AND substr(id, 1, length(?)) = ?')
  const blob = db.prepare('SELECT run_id, body FROM blobs WHERE id = ?')

  return {
    read(id: string): RunRow | undefined {
      const row = byId.get(id)
      return row === undefined ? undefined : toRunRow(row)
    },
    list(filter: RunFilter): RowPage<RunRow> {
      const conditions = ['owner = ?']
      const values: Value[] = [filter.owner]
      if (filter.conversationId !== undefined) {
        conditions.push('conversation_id = ?')
        values.push(filter.conversationId)
      }
      if (filter.family !== undefined) {
        conditions.push('family = ?')
        values.push(filter.family)
      }
      if (filter.skillId !== undefined) {
        conditions.push('skill_id = ?')
        values.push(filter.skillId)
      }
      if (filter.status !== undefined) {
        conditions.push('status IN (SELECT value FROM json_each(?))')
        values.push(JSON.stringify(filter.status))
      }
      if (filter.before !== undefined) {
        conditions.push('position < (SELECT position FROM runs WHERE id = ?)')
        values.push(filter.before)
      }
      const sql = `SELECT * FROM runs WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`
      return readPage(statement(sql), values, filter.limit, toRunRow)
    },
    allOpen(limit: number): RunRow[] {
      return openOfAll.all(limit).map(toRunRow)
    },
    open(conversationId: string): RunRow[] {
      return openInConversation.all(conversationId).map(toRunRow)
    },
    idempotent(
      owner: string,
      route: string,
      key: string,
    ): { runId: string; fingerprint: string; reused: boolean } | undefined {
      const row = idempotent.get(owner, route, key)
      if (row === undefined) return undefined
      return { runId: row.run_id as string, fingerprint: row.fingerprint as string, reused: row.reused === 1 }
    },
    cached(owner: string, cacheKey: string): string | undefined {
      return cached.get(owner, cacheKey)?.id as string | undefined
    },
    nextWakeAt(): number | null {
      return (earliestWake.get()?.at ?? null) as number | null
    },
    nextLeaseEnd(exceptOf: string): number | null {
      return (earliestLeaseEnd.get(exceptOf)?.at ?? null) as number | null
    },
    counts(): Partial<Record<RunStatus, number>> {
      return Object.fromEntries(counts.all().map((row) => [row.status as RunStatus, row.count as number]))
    },
    countBlobs(runId: string, prefix: string): number {
      return Number(blobCount.get(runId, prefix, prefix)?.count ?? 0)
    },
    blob(id: string): { runId: string; body: string } | undefined {
      const row = blob.get(id)
      return row === undefined ? undefined : { runId: row.run_id as string, body: row.body as string }
    },
  }
}
