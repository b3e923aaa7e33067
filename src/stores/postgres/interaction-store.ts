// Interactions: the rows that hold questions to people. Each of them is decided at most once.

import type { Decision, InteractionRow, InteractionStore, InteractionUpdate } from '../interaction-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row } from './connection.ts'
import { filterOf } from './filter.ts'
import { toJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'
import { wakeRun } from './run-table.ts'

type Fields = Omit<InteractionRow, 'reply'> & { replyKey: string | null; replyFingerprint: string | null }

const columns: Columns<Fields> = {
  id: 'value',
  number: 'value',
  runId: 'value',
  owner: 'value',
  conversationId: 'value',
  kind: 'value',
  callId: 'value',
  toolName: 'value',
  prompt: 'value',
  input: 'json',
  outcome: 'value',
  status: 'value',
  response: 'json',
  reason: 'value',
  decidedBy: 'value',
  decidedAt: 'value',
  result: 'json',
  error: 'json',
  executedAt: 'value',
  deadlineAt: 'value',
  atDeadline: 'value',
  replyKey: 'value',
  replyFingerprint: 'value',
  createdAt: 'value',
  updatedAt: 'value',
}
const toFields = rowReader(columns)

export function toInteractionRow(row: Row): InteractionRow {
  const { replyKey, replyFingerprint, ...fields } = toFields(row)
  return { ...fields, reply: replyKey === null ? null : { key: replyKey, fingerprint: replyFingerprint ?? '' } }
}

export function interactionStore({ read, write }: PartAccess): InteractionStore {
  return {
    readInteraction: (id) => read((db) => readInteraction(db, id)),
    interactionsOf: (runId) =>
      read(async (db) =>
        (await db.all('SELECT * FROM interactions WHERE run_id = ? ORDER BY number', runId)).map(toInteractionRow),
      ),
    listInteractions: (filter) =>
      read((db) => {
        const { where, values } = filterOf(
          ['owner = ?', filter.owner],
          ['run_id = ?', filter.runId],
          ['conversation_id = ?', filter.conversationId],
          ['kind = ?', filter.kind],
          ['status = ANY (?)', filter.status],
          ['position < (SELECT position FROM interactions WHERE id = ?)', filter.before],
        )
        const failed = filter.failed === undefined ? '' : `AND error IS ${filter.failed ? 'NOT NULL' : 'NULL'}`
        const sql = `SELECT * FROM interactions WHERE ${where} ${failed} ORDER BY position DESC`
        const long = ['prompt', 'input', 'response', 'reason', 'result', 'error']
        return readPage(db, { sql, values, limit: filter.limit, long }, toInteractionRow)
      }),
    decide: (id, decision) =>
      write(async (db) => {
        const runId = (await db.get('SELECT run_id FROM interactions WHERE id = ?', id))?.['run_id']
        if (typeof runId !== 'string') return undefined
        // The run first, as an append locks it.
        await db.get('SELECT id FROM runs WHERE id = ? FOR NO KEY UPDATE', runId)
        const decided = await decidePending(db, id, decision)
        if (decided) await wakeRun(db, runId)
        const row = await readInteraction(db, id)
        return row === undefined ? undefined : { decided, row }
      }),
  }
}

async function readInteraction(db: Db, id: string): Promise<InteractionRow | undefined> {
  const row = await db.get('SELECT * FROM interactions WHERE id = ?', id)
  return row === undefined ? undefined : toInteractionRow(row)
}

/** True if this call decided it. A person's decision must come before the deadline; those that the deadline triggers are exempt. */
async function decidePending(db: Db, id: string, decision: Decision): Promise<boolean> {
  const atDeadline = decision.status === 'expired' || decision.status === 'auto_decided' ? 1 : 0
  const changed = await db.run(
    `UPDATE interactions
     SET status = ?, response = ?, reason = ?, decided_by = ?, decided_at = ?, reply_key = ?, reply_fingerprint = ?, updated_at = ?
     WHERE id = ? AND status = 'pending' AND (?::integer = 1 OR deadline_at IS NULL OR deadline_at > ?)`,
    decision.status,
    toJson(decision.response),
    decision.reason ?? null,
    decision.by,
    decision.at,
    decision.reply?.key ?? null,
    decision.reply?.fingerprint ?? null,
    decision.at,
    id,
    atDeadline,
    decision.at,
  )
  return changed > 0
}

export async function insertInteraction(db: Db, { reply, ...row }: InteractionRow): Promise<void> {
  const fields: Fields = { ...row, replyKey: reply?.key ?? null, replyFingerprint: reply?.fingerprint ?? null }
  await insertRow(db, 'interactions', { ...columnsOf(columns, fields), input: JSON.stringify(row.input) })
}

export async function updateInteraction(db: Db, change: InteractionUpdate): Promise<void> {
  if (change.closePending === true) {
    await db.run(
      "UPDATE interactions SET status = 'closed', updated_at = ? WHERE id = ? AND status = 'pending'",
      change.at,
      change.id,
    )
  }
  if (change.errorIfConfirmed !== undefined) {
    await db.run(
      "UPDATE interactions SET error = ?, updated_at = ? WHERE id = ? AND status = 'confirmed'",
      toJson(change.errorIfConfirmed),
      change.at,
      change.id,
    )
  }
  if (change.result === undefined && change.error === undefined && change.executedAt === undefined) return
  await db.run(
    `UPDATE interactions SET
       result = CASE WHEN ?::integer = 1 THEN ? ELSE result END,
       error = CASE WHEN ?::integer = 1 THEN ? ELSE error END,
       executed_at = coalesce(?::bigint, executed_at),
       updated_at = ?
     WHERE id = ?`,
    change.result === undefined ? 0 : 1,
    toJson(change.result),
    change.error === undefined ? 0 : 1,
    toJson(change.error),
    change.executedAt ?? null,
    change.at,
    change.id,
  )
}
