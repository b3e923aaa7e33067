// Comparisons: two answers to one question, and the votes on them. Deleting a
// conversation deletes its comparisons by cascade; removing a run does not.

import type { DatabaseSync } from 'node:sqlite'
import type {
  ComparisonFilter,
  ComparisonRow,
  ComparisonStore,
  ComparisonVote,
  Preference,
  VoteCount,
} from '../comparison-store.ts'
import type { ComparisonCommands, Handlers } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson } from './json-column.ts'
import type { MessageWriter } from './message-store.ts'
import type { PartAccess } from './part-access.ts'

function toComparison(row: Row): ComparisonRow {
  return {
    id: row.id as string,
    conversationId: row.conversation_id as string,
    owner: row.owner as string,
    userMessageId: row.user_message_id as string,
    runA: row.run_a as string | null,
    runB: row.run_b as string | null,
    messageA: row.message_a as string | null,
    messageB: row.message_b as string | null,
    configA: row.config_a as string,
    configB: row.config_b as string,
    firstSideIsConfigA: row.first_side_is_config_a === 1,
    offered: row.offered === 1,
    state: row.state as ComparisonRow['state'],
    preference: row.preference as Preference | null,
    preferenceAt: row.preference_at as number | null,
    revisions: fromJson<ComparisonRow['revisions']>(row.revisions) ?? [],
    createdAt: row.created_at as number,
  }
}

export function comparisonStore({ db, read, write }: PartAccess): ComparisonStore {
  const reader = comparisonReader(db)
  return {
    createComparison: (row, messageStates) => write('createComparison', { row, messageStates }),
    readComparison: (id) => read(() => reader.read(id)),
    findComparisonByRun: (runId) => read(() => reader.byRun(runId)),
    listComparisons: (filter) => read(() => reader.list(filter)),
    pendingComparisons: (limit) => read(() => reader.pending(limit)),
    settleComparison: (id, outcome) => write('settleComparison', { id, ...outcome }),
    voteComparison: async (id, vote) => (await write('voteComparison', { id, vote })) ?? undefined,
    countVotes: (owner) => read(() => reader.votes(owner)),
  }
}

export function comparisonReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const byId = db.prepare('SELECT * FROM comparisons WHERE id = ?')
  const byRun = db.prepare('SELECT * FROM comparisons WHERE run_a = ?1 OR run_b = ?1 ORDER BY position DESC LIMIT 1')
  // The condition must be spelled exactly as in the partial index, or SQLite does not use the index.
  const pending = db.prepare("SELECT * FROM comparisons WHERE state = 'pending' ORDER BY position LIMIT ?")
  const one = (row: Row | undefined) => (row === undefined ? undefined : toComparison(row))

  return {
    read: (id: string) => one(byId.get(id)),
    byRun: (runId: string) => one(byRun.get(runId)),
    pending: (limit: number): ComparisonRow[] => pending.all(limit).map(toComparison),
    list(filter: ComparisonFilter): ComparisonRow[] {
      const conditions = ['owner = ?', 'offered = 1']
      const values: Value[] = [filter.owner]
      if (filter.conversationId !== undefined) {
        conditions.push('conversation_id = ?')
        values.push(filter.conversationId)
      }
      if (filter.unvoted === true) conditions.push('preference IS NULL')
      if (filter.state !== undefined) {
        conditions.push('state IN (SELECT value FROM json_each(?))')
        values.push(JSON.stringify(filter.state))
      }
      if (filter.before !== undefined) {
        conditions.push('position < (SELECT position FROM comparisons WHERE id = ?)')
        values.push(filter.before)
      }
      const sql = `SELECT * FROM comparisons WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`
      return statement(sql)
        .all(...values, filter.limit)
        .map(toComparison)
    },
    votes(owner: string | null): VoteCount[] {
      const mine = owner === null ? '' : 'AND owner = ?'
      const sql = `SELECT config_a, config_b, first_side_is_config_a, preference, count(*) AS count FROM comparisons
        WHERE preference IS NOT NULL ${mine} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`
      return statement(sql)
        .all(...(owner === null ? [] : [owner]))
        .map((row) => ({
          configA: row.config_a as string,
          configB: row.config_b as string,
          firstSideIsConfigA: row.first_side_is_config_a === 1,
          preference: row.preference as Preference,
          count: row.count as number,
        }))
    },
  }
}

export type ComparisonWriter = ReturnType<typeof comparisonWriter>

export function comparisonWriter(db: DatabaseSync, messages: Pick<MessageWriter, 'setStates'>) {
  const reader = comparisonReader(db)
  const insertRow = db.prepare(
    `INSERT INTO comparisons (id, conversation_id, owner, user_message_id, run_a, run_b, message_a, message_b, config_a, config_b,
       first_side_is_config_a, offered, state, preference, preference_at, revisions, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const sameAnswers = db.prepare(
    `SELECT * FROM comparisons WHERE conversation_id = ?1 AND owner = ?2
       AND ((message_a = ?3 AND message_b = ?4) OR (message_a = ?4 AND message_b = ?3)) LIMIT 1`,
  )
  const removePair = db.prepare(
    'DELETE FROM comparisons WHERE offered = 0 AND ((run_a = ?1 AND run_b = ?2) OR (run_a = ?2 AND run_b = ?1))',
  )
  const settle = db.prepare(
    "UPDATE comparisons SET state = ?, message_a = ?, message_b = ? WHERE id = ? AND state = 'pending'",
  )
  const vote = db.prepare(
    `UPDATE comparisons SET preference = ?, preference_at = ?, revisions = ?
     WHERE id = ? AND state = 'ready' RETURNING *`,
  )

  function insert(row: ComparisonRow): void {
    insertRow.run(
      row.id,
      row.conversationId,
      row.owner,
      row.userMessageId,
      row.runA,
      row.runB,
      row.messageA,
      row.messageB,
      row.configA,
      row.configB,
      row.firstSideIsConfigA ? 1 : 0,
      row.offered ? 1 : 0,
      row.state,
      row.preference,
      row.preferenceAt,
      JSON.stringify(row.revisions),
      row.createdAt,
    )
  }

  /** The comparison of the same two answers, in either order. */
  function onSameAnswers({ conversationId, owner, messageA, messageB }: ComparisonRow): ComparisonRow | undefined {
    const row = sameAnswers.get(conversationId, owner, messageA, messageB)
    return row === undefined ? undefined : toComparison(row)
  }

  function addVote(
    id: string,
    { preference, at, expectVotes }: ComparisonVote,
  ): { voted: boolean; row: ComparisonRow } | null {
    const before = reader.read(id)
    if (before === undefined) return null
    const votes = before.preference === null ? 0 : before.revisions.length + 1
    if (votes !== expectVotes) return { voted: false, row: before }
    const revisions =
      before.preference === null
        ? []
        : [...before.revisions, { preference: before.preference, at: before.preferenceAt ?? before.createdAt }]
    const row = vote.get(preference, at, JSON.stringify(revisions), id)
    return row === undefined ? { voted: false, row: before } : { voted: true, row: toComparison(row) }
  }

  const handlers: Handlers<ComparisonCommands> = {
    createComparison({ row, messageStates }) {
      removePair.run(row.runA, row.runB)
      const existing = onSameAnswers(row)
      if (existing !== undefined) return existing
      insert(row)
      messages.setStates(messageStates)
      return row
    },
    settleComparison({ id, state, messageA, messageB, messageStates }) {
      const settled = settle.run(state, messageA, messageB, id).changes > 0
      if (settled) messages.setStates(messageStates)
      return settled
    },
    voteComparison({ id, vote: given }) {
      const result = addVote(id, given)
      if (result?.voted === true) messages.setStates(given.messageStates)
      return result
    },
  }

  return { handlers, insert }
}
