// Conversations, and the names that their owners' clients chose for them.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { contactNotFound } from '../contact-store.ts'
import type { ConversationRow, ConversationStore, NewConversation } from '../conversation-store.ts'
import type { ConversationCommands, Handlers } from './commands.ts'
import type { Row } from './connection.ts'
import { nameTopic, ownerTopic } from './hot-commands.ts'
import { nameIsFree } from './known-facts.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'
import { unfinished } from './run-rows.ts'
import type { RunTable } from './run-table.ts'

/** Must be spelled exactly as in the index, or SQLite does not use the index. */
const newestMessage = 'coalesce(last_message_at, created_at)'

/** The `activity` of a conversation that is used now: higher than that of all others of its owner. `?1` is its id. */
const top = `1 + coalesce((
  SELECT other.activity FROM conversations AS other
  WHERE other.owner = conversations.owner AND other.id <> ?1 ORDER BY other.activity DESC LIMIT 1), 0)`

function toConversation(row: Row): ConversationRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    title: row.title as string | null,
    summary: row.summary as string | null,
    contactId: row.contact_id as string | null,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    lastMessageAt: row.last_message_at as number | null,
    archivedAt: row.archived_at as number | null,
  }
}

export function conversationStore({ db, read, write, isReadable, learn }: PartAccess): ConversationStore {
  const reader = conversationReader(db)

  async function findConversationByName(owner: string, name: string): Promise<ConversationRow | undefined> {
    const topic = nameTopic(owner, name)
    const query = () => {
      const row = reader.byName(owner, name)
      if (row === undefined) learn(nameIsFree(owner, name))
      return row
    }
    const row = await read(query, topic)
    // Its name is not the only thing about it that may have changed.
    return row === undefined || isReadable(row.id) ? row : await read(query, row.id)
  }

  return {
    createConversation: async (row) => void (await write('createConversation', row)),
    readConversation: (id) => read(() => reader.read(id), id),
    findConversationByName,
    newestUnnamedConversation: (owner) => read(() => reader.newestUnnamed(owner), ownerTopic(owner)),
    listConversations: (owner, page) => read(() => reader.list(owner, page), ownerTopic(owner)),
    listConversationsByLastMessage: (owner, page) =>
      read(() => reader.listByLastMessage(owner, page), ownerTopic(owner)),
    listConversationsOfContact: (owner, contactId, page) =>
      read(() => reader.listOfContact(owner, contactId, page), ownerTopic(owner)),
    countConversations: (prefix) => read(() => reader.count(prefix)),
    updateConversation: async (id, changes, at) =>
      (await write('updateConversation', { id, changes, at })) ?? undefined,
    deleteConversation: (id) => write('deleteConversation', { id }),
  }
}

export function conversationReader(db: DatabaseSync) {
  const byId = db.prepare(`SELECT * FROM conversations WHERE id = ?`)
  const byName = db.prepare(
    `SELECT conversations.* FROM conversation_names AS names JOIN conversations ON conversations.id = names.conversation_id
     WHERE names.owner = ? AND names.name = ?`,
  )
  const newestUnnamed = db.prepare(
    `SELECT * FROM conversations WHERE owner = ? AND unnamed IS NOT NULL ORDER BY unnamed DESC LIMIT 1`,
  )
  const newest = db.prepare(`SELECT * FROM conversations WHERE owner = ? ORDER BY activity DESC, id DESC LIMIT ?`)
  const newestBefore = db.prepare(
    `SELECT * FROM conversations
     WHERE owner = ? AND (activity, id) < (SELECT activity, id FROM conversations WHERE id = ?)
     ORDER BY activity DESC, id DESC LIMIT ?`,
  )
  const contains = '(instr(lower(title), lower(?)) > 0 OR instr(lower(summary), lower(?)) > 0)'
  const found = db.prepare(
    `SELECT * FROM conversations WHERE owner = ? AND ${contains} ORDER BY activity DESC, id DESC LIMIT ?`,
  )
  const foundBefore = db.prepare(
    `SELECT * FROM conversations
     WHERE owner = ? AND (activity, id) < (SELECT activity, id FROM conversations WHERE id = ?) AND ${contains}
     ORDER BY activity DESC, id DESC LIMIT ?`,
  )
  const lastWritten = db.prepare(
    `SELECT * FROM conversations WHERE owner = ? ORDER BY ${newestMessage} DESC, id DESC LIMIT ?`,
  )
  const lastWrittenBefore = db.prepare(
    `SELECT * FROM conversations
     WHERE owner = ? AND (${newestMessage}, id) < (SELECT ${newestMessage}, id FROM conversations WHERE id = ?)
     ORDER BY ${newestMessage} DESC, id DESC LIMIT ?`,
  )
  const ofContact = db.prepare(
    `SELECT * FROM conversations WHERE owner = ?1 AND contact_id = ?2 ORDER BY activity DESC, id DESC LIMIT ?4 OFFSET ?3`,
  )
  const countOfContact = db.prepare('SELECT count(*) AS count FROM conversations WHERE owner = ? AND contact_id = ?')
  const total = db.prepare('SELECT count(*) AS count FROM conversations WHERE id >= ? AND id < ?')
  const active = db.prepare(
    `SELECT count(DISTINCT conversation_id) AS count FROM runs
     WHERE conversation_id >= ? AND conversation_id < ? AND ${unfinished}`,
  )
  const one = (row: Row | undefined) => (row === undefined ? undefined : toConversation(row))

  return {
    read: (id: string) => one(byId.get(id)),
    byName: (owner: string, name: string) => one(byName.get(owner, name)),
    newestUnnamed: (owner: string) => one(newestUnnamed.get(owner)),
    list(owner: string, { limit, before, search }: { limit: number; before?: { id: string }; search?: string }) {
      if (search !== undefined) {
        return before === undefined
          ? readPage(found, [owner, search, search], limit, toConversation)
          : readPage(foundBefore, [owner, before.id, search, search], limit, toConversation)
      }
      return before === undefined
        ? readPage(newest, [owner], limit, toConversation)
        : readPage(newestBefore, [owner, before.id], limit, toConversation)
    },
    listByLastMessage(owner: string, { limit, before }: { limit: number; before?: { id: string } }) {
      return before === undefined
        ? readPage(lastWritten, [owner], limit, toConversation)
        : readPage(lastWrittenBefore, [owner, before.id], limit, toConversation)
    },
    listOfContact(owner: string, contactId: string, { limit, offset }: { limit: number; offset: number }) {
      const count = countOfContact.get(owner, contactId)?.count as number
      return { ...readPage(ofContact, [owner, contactId, offset], limit, toConversation), total: count }
    },
    count(prefix: string) {
      // The range of ids that begin with the prefix. No id contains \uffff, so it can mark the end.
      const range = [prefix, `${prefix}\uffff`] as const
      return { total: total.get(...range)?.count as number, active: active.get(...range)?.count as number }
    },
  }
}

export type ConversationWriter = ReturnType<typeof conversationWriter>

export function conversationWriter(db: DatabaseSync, runs: Pick<RunTable, 'remove'>) {
  const reader = conversationReader(db)
  const insert = db.prepare(
    `INSERT INTO conversations (id, owner, title, created_at, updated_at, contact_id, activity, unnamed)
     VALUES (?1, ?2, ?3, ?4, ?5, ?7, 1 + coalesce((SELECT max(activity) FROM conversations WHERE owner = ?2), 0),
       CASE WHEN ?6 THEN 1 + coalesce((SELECT max(unnamed) FROM conversations WHERE owner = ?2 AND unnamed IS NOT NULL), 0) END)`,
  )
  const startTurn = db.prepare(
    `UPDATE conversations SET title = coalesce(title, ?2), updated_at = ?3, activity = ${top} WHERE id = ?1`,
  )
  const update = db.prepare(
    `UPDATE conversations SET title = ?2, summary = ?3, contact_id = ?4, updated_at = ?5, activity = ${top} WHERE id = ?1`,
  )
  const contact = db.prepare('SELECT 1 FROM contacts WHERE owner = ? AND id = ?')
  const touch = db.prepare(`UPDATE conversations SET updated_at = ?2, activity = ${top} WHERE id = ?1`)
  const describe = db.prepare('UPDATE conversations SET title = ?, summary = ? WHERE id = ?')
  const bind = db.prepare(
    'INSERT INTO conversation_names (owner, name, conversation_id) VALUES (?, ?, ?) ON CONFLICT (owner, name) DO NOTHING',
  )
  const busy = db.prepare(`SELECT 1 FROM runs WHERE conversation_id = ? AND ${unfinished} LIMIT 1`)
  const runsOf = db.prepare('SELECT id FROM runs WHERE conversation_id = ?')
  const remove = db.prepare('DELETE FROM conversations WHERE id = ?')

  /** The caller has made sure that no conversation has this id. */
  function create(row: NewConversation, unnamed = false): void {
    const { contactId = null } = row
    checkContact(row.owner, contactId)
    insert.run(row.id, row.owner, row.title, row.createdAt, row.updatedAt, unnamed ? 1 : 0, contactId)
  }

  function checkContact(owner: string, id: string | null): void {
    if (id !== null && contact.get(owner, id) === undefined) throw contactNotFound(id)
  }

  const handlers: Handlers<ConversationCommands> = {
    createConversation(row) {
      const { name } = row
      if (name !== undefined && reader.byName(row.owner, name) !== undefined) {
        throw new AppError('accept_stale', 'The owner has a conversation of this name already. Read again, then retry.')
      }
      if (reader.read(row.id) !== undefined) {
        throw new AppError('accept_stale', 'A conversation with this id exists already. Read again, then retry.')
      }
      create(row)
      if (name !== undefined) bind.run(row.owner, name, row.id)
      return null
    },
    updateConversation({ id, changes, at }) {
      const found = reader.read(id)
      if (found === undefined) return null
      const { owner, title, summary, contactId } = { ...found, ...changes }
      if (contactId !== found.contactId) checkContact(owner, contactId)
      update.run(id, title, summary, contactId, at)
      return reader.read(id) ?? null
    },
    deleteConversation({ id }) {
      if (reader.read(id) === undefined) return false
      if (busy.get(id) !== undefined) {
        throw new AppError(
          'conversation_busy',
          'A run of this conversation has not ended. Cancel it or wait for it, then delete.',
        )
      }
      // Runs are removed one by one, because the journal table has no foreign key that would cascade.
      for (const row of runsOf.all(id)) runs.remove(row.id as string)
      remove.run(id)
      return true
    },
  }

  return {
    handlers,
    reader,
    create,
    /** Sets the title only if there is none yet. */
    startTurn(id: string, title: string | null, at: number): void {
      startTurn.run(id, title, at)
    },
    /** Does nothing if the owner already uses the name for a conversation. */
    bindName(owner: string, name: string, conversationId: string): void {
      bind.run(owner, name, conversationId)
    },
    describe({ id, title, summary }: { id: string; title: string; summary: string }): void {
      describe.run(title, summary, id)
    },
    touch(id: string, at: number): void {
      touch.run(id, at)
    },
  }
}
