// Interactions: the rows that hold questions to people. Each of them is decided at most once.

import type { DatabaseSync } from 'node:sqlite'
import type { ErrorValue } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type {
  Decision,
  InteractionFilter,
  InteractionRow,
  InteractionStore,
  InteractionUpdate,
} from '../interaction-store.ts'
import { feedInputCharsMax, feedPromptCharsMax } from '../feed-store.ts'
import type { RowPage } from '../row-page.ts'
import type { Handlers, InteractionCommands } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson, toJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'
import type { RunTable } from './run-table.ts'

function toInteraction(row: Row): InteractionRow {
  return {
    id: row.id as string,
    number: row.number as number,
    runId: row.run_id as string,
    owner: row.owner as string,
    conversationId: row.conversation_id as string | null,
    kind: row.kind as InteractionRow['kind'],
    callId: row.call_id as string | null,
    toolName: row.tool_name as string | null,
    prompt: row.prompt as string,
    input: fromJson<JsonValue>(row.input),
    outcome: row.outcome as 'unknown' | null,
    status: row.status as InteractionRow['status'],
    response: fromJson<JsonValue>(row.response),
    reason: row.reason as string | null,
    decidedBy: row.decided_by as string | null,
    decidedAt: row.decided_at as number | null,
    result: fromJson<JsonValue>(row.result),
    error: fromJson<ErrorValue>(row.error),
    executedAt: row.executed_at as number | null,
    deadlineAt: row.deadline_at as number | null,
    atDeadline: row.at_deadline as InteractionRow['atDeadline'],
    reply:
      row.reply_key === null ? null : { key: row.reply_key as string, fingerprint: row.reply_fingerprint as string },
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
  }
}

export function interactionStore({ db, read, write }: PartAccess): InteractionStore {
  const reader = interactionReader(db)
  return {
    readInteraction: (id) => read(() => reader.read(id)),
    listInteractions: (filter) => read(() => reader.list(filter)),
    interactionsOf: (runId) => read(() => reader.ofRun(runId)),
    decide: async (id, decision) => (await write('decide', { id, decision })) ?? undefined,
  }
}

export function interactionReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const byId = db.prepare('SELECT * FROM interactions WHERE id = ?')
  const byRun = db.prepare('SELECT * FROM interactions WHERE run_id = ? ORDER BY number')
  const forFeed = db.prepare(
    `SELECT *, substr(prompt, 1, ${feedPromptCharsMax}) AS prompt,
       CASE WHEN length(input) <= ${feedInputCharsMax} THEN input ELSE 'null' END AS input,
       NULL AS response, NULL AS result, NULL AS error
     FROM interactions WHERE id = ?`,
  )

  return {
    /** Without its long texts; see `FeedRows`. */
    readForFeed(id: string): InteractionRow | undefined {
      const row = forFeed.get(id)
      return row === undefined ? undefined : toInteraction(row)
    },
    read(id: string): InteractionRow | undefined {
      const row = byId.get(id)
      return row === undefined ? undefined : toInteraction(row)
    },
    ofRun(runId: string): InteractionRow[] {
      return byRun.all(runId).map(toInteraction)
    },
    list(filter: InteractionFilter): RowPage<InteractionRow> {
      const conditions = ['owner = ?']
      const values: Value[] = [filter.owner]
      for (const [column, value] of [
        ['run_id', filter.runId],
        ['conversation_id', filter.conversationId],
        ['kind', filter.kind],
      ] as const) {
        if (value === undefined) continue
        conditions.push(`${column} = ?`)
        values.push(value)
      }
      if (filter.status !== undefined) {
        conditions.push('status IN (SELECT value FROM json_each(?))')
        values.push(JSON.stringify(filter.status))
      }
      if (filter.failed !== undefined) conditions.push(`error IS ${filter.failed ? 'NOT NULL' : 'NULL'}`)
      if (filter.before !== undefined) {
        conditions.push('position < (SELECT position FROM interactions WHERE id = ?)')
        values.push(filter.before)
      }
      const sql = `SELECT * FROM interactions WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`
      return readPage(statement(sql), values, filter.limit, toInteraction)
    },
  }
}

export type InteractionWriter = ReturnType<typeof interactionWriter>

export function interactionWriter(db: DatabaseSync, runs: Pick<RunTable, 'wake'>) {
  const reader = interactionReader(db)
  const columns = [
    'id',
    'number',
    'run_id',
    'owner',
    'conversation_id',
    'kind',
    'call_id',
    'tool_name',
    'prompt',
    'input',
    'outcome',
    'status',
    'response',
    'reason',
    'decided_by',
    'decided_at',
    'result',
    'error',
    'executed_at',
    'deadline_at',
    'at_deadline',
    'reply_key',
    'reply_fingerprint',
    'created_at',
    'updated_at',
  ]
  const insert = db.prepare(
    `INSERT INTO interactions (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  // A person's decision must come before the deadline. Decisions that the deadline itself triggers are exempt.
  const decide = db.prepare(`
    UPDATE interactions
    SET status = :status, response = :response, reason = :reason, decided_by = :by, decided_at = :at,
      reply_key = :replyKey, reply_fingerprint = :replyFingerprint, updated_at = :at
    WHERE id = :id AND status = 'pending'
      AND (:atDeadline OR deadline_at IS NULL OR deadline_at > :at)`)
  const close = db.prepare(
    "UPDATE interactions SET status = 'closed', updated_at = ? WHERE id = ? AND status = 'pending'",
  )
  const stop = db.prepare("UPDATE interactions SET error = ?, updated_at = ? WHERE id = ? AND status = 'confirmed'")
  const finish = db.prepare(`
    UPDATE interactions SET
      result = CASE WHEN :setResult THEN :result ELSE result END,
      error = CASE WHEN :setError THEN :error ELSE error END,
      executed_at = coalesce(:executedAt, executed_at),
      updated_at = :at
    WHERE id = :id`)

  /** True if this call decided it; false if it was decided before or its deadline has passed. */
  function decidePending(id: string, decision: Decision): boolean {
    const { changes } = decide.run({
      id,
      status: decision.status,
      response: toJson(decision.response),
      reason: decision.reason ?? null,
      by: decision.by,
      replyKey: decision.reply?.key ?? null,
      replyFingerprint: decision.reply?.fingerprint ?? null,
      at: decision.at,
      atDeadline: decision.status === 'expired' || decision.status === 'auto_decided' ? 1 : 0,
    })
    return changes > 0
  }

  const handlers: Handlers<InteractionCommands> = {
    decide({ id, decision }) {
      const decided = decidePending(id, decision)
      const row = reader.read(id)
      if (row === undefined) return null
      if (decided) runs.wake(row.runId)
      return { decided, row }
    },
  }

  return {
    handlers,
    insert(row: InteractionRow): void {
      insert.run(
        row.id,
        row.number,
        row.runId,
        row.owner,
        row.conversationId,
        row.kind,
        row.callId,
        row.toolName,
        row.prompt,
        JSON.stringify(row.input),
        row.outcome,
        row.status,
        toJson(row.response),
        row.reason,
        row.decidedBy,
        row.decidedAt,
        toJson(row.result),
        toJson(row.error),
        row.executedAt,
        row.deadlineAt,
        row.atDeadline,
        row.reply?.key ?? null,
        row.reply?.fingerprint ?? null,
        row.createdAt,
        row.updatedAt,
      )
    },
    update(change: InteractionUpdate): void {
      if (change.closePending === true) close.run(change.at, change.id)
      if (change.errorIfConfirmed !== undefined) stop.run(toJson(change.errorIfConfirmed), change.at, change.id)
      if (change.result === undefined && change.error === undefined && change.executedAt === undefined) return
      finish.run({
        id: change.id,
        setResult: change.result === undefined ? 0 : 1,
        result: toJson(change.result),
        setError: change.error === undefined ? 0 : 1,
        error: toJson(change.error),
        executedAt: change.executedAt ?? null,
        at: change.at,
      })
    },
  }
}
