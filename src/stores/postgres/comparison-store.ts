// Comparisons: two answers to one question, and the votes on them. Deleting a conversation
// deletes its comparisons by cascade; removing a run does not.

import type { ComparisonRow, ComparisonStore, ComparisonVote, Preference } from '../comparison-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row } from './connection.ts'
import { filterOf } from './filter.ts'
import { setMessageStates } from './message-store.ts'
import type { PartAccess } from './part-access.ts'

const columns: Columns<ComparisonRow> = {
  id: 'value',
  conversationId: 'value',
  owner: 'value',
  userMessageId: 'value',
  runA: 'value',
  runB: 'value',
  messageA: 'value',
  messageB: 'value',
  configA: 'value',
  configB: 'value',
  firstSideIsConfigA: 'flag',
  offered: 'flag',
  state: 'value',
  preference: 'value',
  preferenceAt: 'value',
  revisions: 'json',
  createdAt: 'value',
}
export const toComparisonRow = rowReader<ComparisonRow>(columns, { revisions: [] })
const one = (row: Row | undefined) => (row === undefined ? undefined : toComparisonRow(row))

export function comparisonStore({ read, write }: PartAccess): ComparisonStore {
  return {
    createComparison: (row, messageStates) =>
      write(async (db) => {
        // Two requests for the same answers come one after the other.
        await db.get('SELECT id FROM conversations WHERE id = ? FOR NO KEY UPDATE', row.conversationId)
        await db.run(
          'DELETE FROM comparisons WHERE offered = 0 AND ((run_a = ? AND run_b = ?) OR (run_a = ? AND run_b = ?))',
          row.runA,
          row.runB,
          row.runB,
          row.runA,
        )
        const existing = await onSameAnswers(db, row)
        if (existing !== undefined) return existing
        await insertComparison(db, row)
        await setMessageStates(db, messageStates)
        return row
      }),
    readComparison: (id) => read(async (db) => one(await db.get('SELECT * FROM comparisons WHERE id = ?', id))),
    findComparisonByRun: (runId) =>
      read(async (db) =>
        one(
          await db.get(
            'SELECT * FROM comparisons WHERE run_a = ? OR run_b = ? ORDER BY position DESC LIMIT 1',
            runId,
            runId,
          ),
        ),
      ),
    listComparisons: (filter) =>
      read(async (db) => {
        const { where, values } = filterOf(
          ['owner = ?', filter.owner],
          ['conversation_id = ?', filter.conversationId],
          ['state = ANY (?)', filter.state],
          ['position < (SELECT position FROM comparisons WHERE id = ?)', filter.before],
        )
        const unvoted = filter.unvoted === true ? 'AND preference IS NULL' : ''
        const sql = `SELECT * FROM comparisons WHERE ${where} AND offered = 1 ${unvoted} ORDER BY position DESC LIMIT ?`
        return (await db.all(sql, ...values, filter.limit)).map(toComparisonRow)
      }),
    pendingComparisons: (limit) =>
      read(async (db) =>
        (await db.all("SELECT * FROM comparisons WHERE state = 'pending' ORDER BY position LIMIT ?", limit)).map(
          toComparisonRow,
        ),
      ),
    settleComparison: (id, { state, messageA, messageB, messageStates }) =>
      write(async (db) => {
        const changed = await db.run(
          "UPDATE comparisons SET state = ?, message_a = ?, message_b = ? WHERE id = ? AND state = 'pending'",
          state,
          messageA,
          messageB,
          id,
        )
        if (changed > 0) await setMessageStates(db, messageStates)
        return changed > 0
      }),
    voteComparison: (id, vote) =>
      write(async (db) => {
        const result = await addVote(db, id, vote)
        if (result?.voted === true) await setMessageStates(db, vote.messageStates)
        return result
      }),
    countVotes: (owner) =>
      read(async (db) => {
        const sql = `SELECT config_a, config_b, first_side_is_config_a, preference, count(*) AS count FROM comparisons
          WHERE preference IS NOT NULL ${owner === null ? '' : 'AND owner = ?'} GROUP BY 1, 2, 3, 4
          ORDER BY config_a COLLATE "C", config_b COLLATE "C", 3, preference COLLATE "C"`
        return (await db.all(sql, ...(owner === null ? [] : [owner]))).map((row) => ({
          configA: row['config_a'] as string,
          configB: row['config_b'] as string,
          firstSideIsConfigA: row['first_side_is_config_a'] === 1,
          preference: row['preference'] as Preference,
          count: row['count'] as number,
        }))
      }),
  }
}

export async function insertComparison(db: Db, row: ComparisonRow): Promise<void> {
  await insertRow(db, 'comparisons', columnsOf(columns, row))
}

/** The comparison of the same two answers, in either order. */
async function onSameAnswers(
  db: Db,
  { conversationId, owner, messageA, messageB }: ComparisonRow,
): Promise<ComparisonRow | undefined> {
  const row = await db.get(
    `SELECT * FROM comparisons WHERE conversation_id = ? AND owner = ?
       AND ((message_a = ? AND message_b = ?) OR (message_a = ? AND message_b = ?)) LIMIT 1`,
    conversationId,
    owner,
    messageA,
    messageB,
    messageB,
    messageA,
  )
  return one(row)
}

async function addVote(
  db: Db,
  id: string,
  { preference, at, expectVotes }: ComparisonVote,
): Promise<{ voted: boolean; row: ComparisonRow } | undefined> {
  const before = one(await db.get('SELECT * FROM comparisons WHERE id = ? FOR NO KEY UPDATE', id))
  if (before === undefined) return undefined
  const votes = before.preference === null ? 0 : before.revisions.length + 1
  if (votes !== expectVotes) return { voted: false, row: before }
  const revisions =
    before.preference === null
      ? []
      : [...before.revisions, { preference: before.preference, at: before.preferenceAt ?? before.createdAt }]
  const [row] = await db.all(
    `UPDATE comparisons SET preference = ?, preference_at = ?, revisions = ? WHERE id = ? AND state = 'ready' RETURNING *`,
    preference,
    at,
    JSON.stringify(revisions),
    id,
  )
  return row === undefined ? { voted: false, row: before } : { voted: true, row: toComparisonRow(row) }
}
