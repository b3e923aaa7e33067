// Conversations, and the names that their owners' clients chose for them.

import { AppError } from '../../errors/app-error.ts'
import { contactNotFound } from '../contact-store.ts'
import type { ConversationRow, ConversationStore, NewConversation } from '../conversation-store.ts'
import { insertRow, rowReader } from './columns.ts'
import type { Db, Row } from './connection.ts'
import { filterOf } from './filter.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'
import { unfinished } from './run-rows.ts'

/** Spelled as in the index. */
const newestMessage = 'coalesce(last_message_at, created_at)'

export const toConversationRow = rowReader<ConversationRow>({
  id: 'value',
  owner: 'value',
  title: 'value',
  summary: 'value',
  contactId: 'value',
  createdAt: 'value',
  updatedAt: 'value',
  lastMessageAt: 'value',
  archivedAt: 'value',
})

const one = (row: Row | undefined) => (row === undefined ? undefined : toConversationRow(row))

export function conversationStore({ read, write }: PartAccess): ConversationStore {
  const page = (
    db: Db,
    owner: string,
    order: string,
    { limit, before, search }: { limit: number; before?: { id: string }; search?: string },
  ) => {
    const { where, values } = filterOf(
      ['owner = ?', owner],
      [`(${order}, id) < (SELECT ${order}, id FROM conversations WHERE id = ?)`, before?.id],
      ["strpos(lower(coalesce(title, '') || chr(10) || coalesce(summary, '')), lower(?)) > 0", search],
    )
    const sql = `SELECT * FROM conversations WHERE ${where} ORDER BY ${order} DESC, id DESC`
    return readPage(db, { sql, values, limit, long: ['title', 'summary'] }, toConversationRow)
  }

  return {
    createConversation: (row) => write((db) => createConversation(db, row)),
    readConversation: (id) => read((db) => readConversation(db, id)),
    findConversationByName: (owner, name) => read((db) => findConversationByName(db, owner, name)),
    newestUnnamedConversation: (owner) =>
      read(async (db) =>
        one(
          await db.get(
            'SELECT * FROM conversations WHERE owner = ? AND unnamed IS NOT NULL ORDER BY unnamed DESC LIMIT 1',
            owner,
          ),
        ),
      ),
    listConversations: (owner, wanted) => read((db) => page(db, owner, 'activity', wanted)),
    listConversationsByLastMessage: (owner, wanted) => read((db) => page(db, owner, newestMessage, wanted)),
    listConversationsOfContact: (owner, contactId, { limit, offset }) =>
      read(async (db) => {
        const found = 'FROM conversations WHERE owner = ? AND contact_id = ?'
        const total = Number((await db.get(`SELECT count(*) AS count ${found}`, owner, contactId))?.['count'])
        const sql = `SELECT * ${found} ORDER BY activity DESC, id DESC`
        const query = { sql, values: [owner, contactId], limit, offset, long: ['title', 'summary'] }
        return { ...(await readPage(db, query, toConversationRow)), total }
      }),
    countConversations: (prefix) =>
      read(async (db) => {
        const range = [prefix, `${prefix}\u{10FFFF}`]
        const row = await db.get(
          `SELECT (SELECT count(*) FROM conversations WHERE id >= ? AND id < ?) AS total,
             (SELECT count(DISTINCT conversation_id) FROM runs WHERE conversation_id >= ? AND conversation_id < ? AND ${unfinished}) AS active`,
          ...range,
          ...range,
        )
        return { total: row?.['total'] as number, active: row?.['active'] as number }
      }),
    updateConversation: (id, changes, at) =>
      write(async (db) => {
        const found = one(await db.get('SELECT * FROM conversations WHERE id = ? FOR NO KEY UPDATE', id))
        if (found === undefined) return undefined
        const { owner, title, summary, contactId } = { ...found, ...changes }
        if (contactId !== found.contactId) await checkContact(db, owner, contactId)
        await db.run(
          `UPDATE conversations SET title = ?, summary = ?, contact_id = ?, updated_at = ?, activity = nextval('conversation_activity')
           WHERE id = ?`,
          title,
          summary,
          contactId,
          at,
          id,
        )
        return await readConversation(db, id)
      }),
    deleteConversation: (id) =>
      write(async (db) => {
        if ((await db.get('SELECT id FROM conversations WHERE id = ? FOR UPDATE', id)) === undefined) return false
        const busy = await db.get(`SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} LIMIT 1`, id)
        if (busy !== undefined) {
          throw new AppError(
            'conversation_busy',
            'A run of this conversation has not ended. Cancel it or wait for it, then delete.',
          )
        }
        await db.run('DELETE FROM conversations WHERE id = ?', id)
        return true
      }),
  }
}

export async function readConversation(db: Db, id: string): Promise<ConversationRow | undefined> {
  return one(await db.get('SELECT * FROM conversations WHERE id = ?', id))
}

export async function findConversationByName(
  db: Db,
  owner: string,
  name: string,
): Promise<ConversationRow | undefined> {
  const row = await db.get(
    `SELECT conversations.* FROM conversation_names AS names JOIN conversations ON conversations.id = names.conversation_id
     WHERE names.owner = ? AND names.name = ?`,
    owner,
    name,
  )
  return one(row)
}

/** A contact that exists now cannot be deleted before the transaction ends. */
async function checkContact(db: Db, owner: string, id: string | null): Promise<void> {
  if (id === null) return
  const found = await db.get('SELECT serial FROM contacts WHERE owner = ? AND id = ? FOR KEY SHARE', owner, id)
  if (found === undefined) throw contactNotFound(id)
}

export async function createConversation(db: Db, row: NewConversation, unnamed = false): Promise<void> {
  const { contactId = null } = row
  await checkContact(db, row.owner, contactId)
  const order = Number((await db.get("SELECT nextval('conversation_activity') AS next"))?.['next'])
  const inserted = await insertRow(
    db,
    'conversations',
    {
      id: row.id,
      owner: row.owner,
      title: row.title,
      created_at: row.createdAt,
      updated_at: row.updatedAt,
      contact_id: contactId,
      activity: order,
      unnamed: unnamed ? order : null,
    },
    'ON CONFLICT (id) DO NOTHING RETURNING id',
  )
  if (inserted.length === 0) {
    throw new AppError('accept_stale', 'A conversation with this id exists already. Read again, then retry.')
  }
  if (row.name === undefined) return
  await bindName(db, row.owner, row.name, row.id)
  const named = await findConversationByName(db, row.owner, row.name)
  if (named?.id !== row.id) {
    throw new AppError('accept_stale', 'The name has a conversation already. Read again, then retry.')
  }
}

/** Sets the title only if there is none yet. */
export async function startTurn(db: Db, id: string, title: string | null, at: number): Promise<void> {
  await db.run(
    `UPDATE conversations SET title = coalesce(title, ?), updated_at = ?, activity = nextval('conversation_activity') WHERE id = ?`,
    title,
    at,
    id,
  )
}

/** Does nothing if the owner already uses the name for a conversation. */
export async function bindName(db: Db, owner: string, name: string, conversationId: string): Promise<void> {
  await insertRow(
    db,
    'conversation_names',
    { owner, name, conversation_id: conversationId },
    'ON CONFLICT (owner, name) DO NOTHING',
  )
}

export async function touchConversation(db: Db, id: string, at: number): Promise<void> {
  await db.run(
    `UPDATE conversations SET updated_at = ?, activity = nextval('conversation_activity') WHERE id = ?`,
    at,
    id,
  )
}

export async function describeConversation(
  db: Db,
  { id, title, summary }: { id: string; title: string; summary: string },
): Promise<void> {
  await db.run('UPDATE conversations SET title = ?, summary = ? WHERE id = ?', title, summary, id)
}
