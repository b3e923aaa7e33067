// Messages: a fold of the journal, stored as rows so that clients can page through them and
// prompts can include them.

import { filesOf } from '../../journal/message-parts.ts'
import type { Part } from '../../journal/part.ts'
import type { MessageRow, MessageStateChange, MessageStore } from '../message-store.ts'
import type { RowPage } from '../row-page.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row, Value } from './connection.ts'
import { referToFiles } from './file-store.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

type Fields = Omit<MessageRow, 'parts'> & { parts: Part[] | null }

const columns: Columns<Fields> = {
  id: 'value',
  conversationId: 'value',
  runId: 'value',
  parentId: 'value',
  role: 'value',
  content: 'value',
  parts: 'json',
  state: 'value',
  toolCallId: 'value',
  metadata: 'json',
  createdAt: 'value',
}
const toFields = rowReader<Fields>(columns, { metadata: {} })

function toMessage(row: Row): MessageRow {
  const { parts, ...fields } = toFields(row)
  return parts === null ? fields : { ...fields, parts }
}

/** Rows with role `system` are for prompts only. */
const notHidden = "role <> 'system'"
/** Steps that only called tools are for prompts only too. */
const onlyCalls = `role = 'assistant' AND content = '' AND metadata LIKE '%"toolCalls":%'`
const shown = `state = 'active' AND ${notHidden} AND NOT (${onlyCalls})`
const beforeMessage = '(turn, position) < (SELECT turn, position FROM messages WHERE id = ?)'
const newestFirst = 'ORDER BY turn DESC, position DESC'

export function messageStore({ read, write }: PartAccess): MessageStore {
  /** The newest rows that match, ascending. */
  const page = (condition: string, values: Value[], limit: number): Promise<RowPage<MessageRow>> =>
    read(async (db) => {
      const sql = `SELECT * FROM messages WHERE conversation_id = ? AND ${condition} ${newestFirst}`
      const { rows, more } = await readPage(
        db,
        { sql, values, limit, long: ['content', 'parts', 'metadata'] },
        toMessage,
      )
      return { rows: rows.reverse(), more }
    })

  return {
    readMessage: (id) =>
      read(async (db) => {
        const row = await db.get('SELECT * FROM messages WHERE id = ?', id)
        return row === undefined ? undefined : toMessage(row)
      }),
    messageBeginnings: (ids, chars) =>
      read(async (db) => {
        const rows = await db.all('SELECT id, left(content, ?) AS text FROM messages WHERE id = ANY (?)', chars, ids)
        return new Map(rows.map((row) => [row['id'] as string, row['text'] as string]))
      }),
    listMessages(conversationId, { limit, before }) {
      if (before === undefined) return page(shown, [conversationId], limit)
      return 'id' in before
        ? page(`${shown} AND ${beforeMessage}`, [conversationId, before.id], limit)
        : page(`${shown} AND created_at < ?`, [conversationId, before.createdAt], limit)
    },
    allMessages: (conversationId, { limit, runId }) =>
      read(async (db) => {
        const rows =
          runId === undefined
            ? await db.all(
                `SELECT * FROM messages WHERE conversation_id = ? AND ${notHidden} ${newestFirst} LIMIT ?`,
                conversationId,
                limit,
              )
            : await db.all(
                `SELECT * FROM messages WHERE conversation_id = ? AND run_id = ? ${newestFirst} LIMIT ?`,
                conversationId,
                runId,
                limit,
              )
        return rows.map(toMessage).reverse()
      }),
    pageOfAllMessages: (conversationId, { limit, before }) =>
      before === undefined
        ? page(notHidden, [conversationId], limit)
        : page(`${notHidden} AND ${beforeMessage}`, [conversationId, before], limit),
    setMessageStates: (states) => write((db) => setMessageStates(db, states)),
    historyBefore: (conversationId, beforeRunId, limit, beforeMessageId) =>
      read(async (db) => {
        const turn = (await db.get('SELECT coalesce(turn, position) AS turn FROM runs WHERE id = ?', beforeRunId))?.[
          'turn'
        ]
        if (turn === undefined) return []
        // A message without a run was stored together with a run: it has that run's turn and comes before the run's own messages.
        const rows = await db.all(
          `SELECT * FROM messages WHERE conversation_id = ? AND state = 'active'
             AND (turn < ? OR (turn = ? AND run_id IS NULL))
             ${beforeMessageId === undefined ? '' : `AND ${beforeMessage}`} ${newestFirst} LIMIT ?`,
          conversationId,
          turn,
          turn,
          ...(beforeMessageId === undefined ? [] : [beforeMessageId]),
          limit,
        )
        return rows.map(toMessage).reverse()
      }),
  }
}

/** `turn`: the position of the run that the message is stored with, or of the run whose turn that run joined. */
export async function insertMessage(db: Db, row: MessageRow, turn: number): Promise<void> {
  const { parts } = row
  await insertRow(db, 'messages', { ...columnsOf(columns, { ...row, parts: parts ?? null }), turn })
  const files = parts === undefined ? [] : filesOf(parts).map(({ fileId }) => fileId)
  await referToFiles(db, { messageId: row.id }, files)
}

export async function setMessageContent(db: Db, id: string, content: string): Promise<void> {
  await db.run('UPDATE messages SET content = ? WHERE id = ?', content, id)
}

/** In the order of the ids, so that two transactions cannot wait for each other. */
export async function setMessageStates(db: Db, states: readonly MessageStateChange[]): Promise<void> {
  for (const { id, state } of states.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    await db.run('UPDATE messages SET state = ? WHERE id = ?', state, id)
  }
}
