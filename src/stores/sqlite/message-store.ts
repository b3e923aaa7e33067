// Messages: a fold of the journal, stored as rows so that clients can page through them
// and prompts can include them.

import type { DatabaseSync } from 'node:sqlite'
import type { JsonValue } from '../../journal/event.ts'
import { filesOf } from '../../journal/message-parts.ts'
import type { Part } from '../../journal/part.ts'
import type { MessageRow, MessageState, MessageStateChange, MessageStore } from '../message-store.ts'
import type { RowPage } from '../row-page.ts'
import type { Handlers, MessageCommands } from './commands.ts'
import type { Row } from './connection.ts'
import type { FileWriter } from './file-store.ts'
import { fromJson, toJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

function toMessage(row: Row): MessageRow {
  const parts = fromJson<Part[]>(row.parts)
  return {
    id: row.id as string,
    conversationId: row.conversation_id as string,
    runId: row.run_id as string | null,
    parentId: row.parent_id as string | null,
    role: row.role as MessageRow['role'],
    content: row.content as string,
    ...(parts === null ? {} : { parts }),
    state: row.state as MessageState,
    toolCallId: row.tool_call_id as string | null,
    metadata: fromJson<Record<string, JsonValue>>(row.metadata) ?? {},
    createdAt: row.created_at as number,
  }
}

function ascending<Row>({ rows, more }: RowPage<Row>): RowPage<Row> {
  return { rows: rows.reverse(), more }
}

/** Turns before and after those of all runs. */
const firstTurn = -1
const lastTurn = Number.MAX_SAFE_INTEGER

export function messageStore({ db, read, readCommitted, write, isHistoryStored }: PartAccess): MessageStore {
  const reader = messageReader(db)
  return {
    readMessage: (id) => read(() => reader.read(id)),
    messageBeginnings: (ids, chars) => read(() => reader.beginnings(ids, chars)),
    listMessages: (conversationId, page) => read(() => reader.list(conversationId, page), conversationId),
    allMessages: (conversationId, filter) => read(() => reader.all(conversationId, filter), conversationId),
    pageOfAllMessages: (conversationId, page) => read(() => reader.pageOfAll(conversationId, page), conversationId),
    setMessageStates: async (states) => void (await write('setMessageStates', states)),
    historyBefore(conversationId, beforeRunId, limit, beforeMessageId) {
      const isStored = isHistoryStored(beforeRunId)
      // If only the log has the run, all messages that the database has are before it.
      const turn = isStored ? lastTurn : firstTurn
      const query = () => reader.historyBefore(conversationId, beforeRunId, turn, limit, beforeMessageId)
      return isStored ? readCommitted(query) : read(query, conversationId)
    },
  }
}

function messageReader(db: DatabaseSync) {
  // Rows with role `system` are for prompts only, and so are steps that only called tools.
  const onlyCalls = `role = 'assistant' AND content = '' AND metadata LIKE '%"toolCalls":%'`
  const shown = `conversation_id = ? AND state = 'active' AND role <> 'system' AND NOT (${onlyCalls})`
  const inTurns = 'ORDER BY turn DESC, position DESC LIMIT ?'
  const newest = db.prepare(`SELECT * FROM messages WHERE ${shown} ${inTurns}`)
  const beforeTime = db.prepare(`SELECT * FROM messages WHERE ${shown} AND created_at < ? ${inTurns}`)
  const beforeMessage = db.prepare(
    `SELECT * FROM messages WHERE ${shown} AND (turn, position) < (SELECT turn, position FROM messages WHERE id = ?) ${inTurns}`,
  )
  const byId = db.prepare('SELECT * FROM messages WHERE id = ?')
  const beginnings = db.prepare(
    'SELECT id, substr(content, 1, ?) AS text FROM messages WHERE id IN (SELECT value FROM json_each(?))',
  )
  const all = db.prepare(`SELECT * FROM messages WHERE conversation_id = ? AND role <> 'system' ${inTurns}`)
  const allBefore = db.prepare(
    `SELECT * FROM messages WHERE conversation_id = ? AND role <> 'system'
       AND (turn, position) < (SELECT turn, position FROM messages WHERE id = ?) ${inTurns}`,
  )
  const allOfRun = db.prepare(`SELECT * FROM messages WHERE conversation_id = ? AND run_id = ? ${inTurns}`)
  // A message without a run was stored together with a run: it has that run's turn and comes before the run's own messages.
  // The turn is part of the query, because the writer may store the run at any moment.
  const own = 'coalesce((SELECT coalesce(turn, position) FROM runs WHERE id = ?2), ?3)'
  const ofHistory = `SELECT * FROM messages WHERE conversation_id = ?1 AND state = 'active'
       AND turn <= ${own} AND (turn < ${own} OR run_id IS NULL)`
  const history = db.prepare(`${ofHistory} ORDER BY turn DESC, position DESC LIMIT ?4`)
  const historyPage = db.prepare(
    `${ofHistory} AND (turn, position) < (SELECT turn, position FROM messages WHERE id = ?5)
     ORDER BY turn DESC, position DESC LIMIT ?4`,
  )

  return {
    read(id: string): MessageRow | undefined {
      const row = byId.get(id)
      return row === undefined ? undefined : toMessage(row)
    },
    beginnings(ids: readonly string[], chars: number): ReadonlyMap<string, string> {
      const rows = beginnings.all(chars, JSON.stringify(ids))
      return new Map(rows.map(({ id, text }) => [id as string, text as string]))
    },
    list(
      conversationId: string,
      { limit, before }: { limit: number; before?: { id: string } | { createdAt: number } },
    ): RowPage<MessageRow> {
      if (before === undefined) return ascending(readPage(newest, [conversationId], limit, toMessage))
      return 'id' in before
        ? ascending(readPage(beforeMessage, [conversationId, before.id], limit, toMessage))
        : ascending(readPage(beforeTime, [conversationId, before.createdAt], limit, toMessage))
    },
    pageOfAll(conversationId: string, { limit, before }: { limit: number; before?: string }): RowPage<MessageRow> {
      return before === undefined
        ? ascending(readPage(all, [conversationId], limit, toMessage))
        : ascending(readPage(allBefore, [conversationId, before], limit, toMessage))
    },
    all(conversationId: string, { limit, runId }: { limit: number; runId?: string }): MessageRow[] {
      const rows = runId === undefined ? all.all(conversationId, limit) : allOfRun.all(conversationId, runId, limit)
      return rows.map(toMessage).reverse()
    },
    /** `turn`: the turn of the run if the database does not have the run. */
    historyBefore(
      conversationId: string,
      beforeRunId: string,
      turn: number,
      limit: number,
      beforeMessageId: string | undefined,
    ): MessageRow[] {
      const rows =
        beforeMessageId === undefined
          ? history.all(conversationId, beforeRunId, turn, limit)
          : historyPage.all(conversationId, beforeRunId, turn, limit, beforeMessageId)
      return rows.map(toMessage).reverse()
    },
  }
}

export type MessageWriter = ReturnType<typeof messageWriter>

export function messageWriter(db: DatabaseSync, files: FileWriter) {
  const insert = db.prepare(
    `INSERT INTO messages (id, conversation_id, run_id, turn, parent_id, role, content, state, tool_call_id, metadata, created_at, parts)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const setContent = db.prepare('UPDATE messages SET content = ? WHERE id = ?')
  const setState = db.prepare('UPDATE messages SET state = ? WHERE id = ?')

  function setStates(states: readonly MessageStateChange[]): void {
    for (const { id, state } of states) setState.run(state, id)
  }

  const handlers: Handlers<MessageCommands> = {
    setMessageStates(states) {
      setStates(states)
      return null
    },
  }

  return {
    handlers,
    setStates,
    setContent(id: string, content: string): void {
      setContent.run(content, id)
    },
    /** `turn`: the position of the run that the message is stored with, or of the run whose turn that run joined. */
    insert(row: MessageRow, turn: number): void {
      insert.run(
        row.id,
        row.conversationId,
        row.runId,
        turn,
        row.parentId,
        row.role,
        row.content,
        row.state,
        row.toolCallId,
        JSON.stringify(row.metadata),
        row.createdAt,
        toJson(row.parts),
      )
      if (row.parts !== undefined) {
        const ids = filesOf(row.parts).map(({ fileId }) => fileId)
        files.refer({ messageId: row.id }, ids)
      }
    },
  }
}
