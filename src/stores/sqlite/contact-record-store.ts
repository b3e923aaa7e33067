// Facts, to-dos and events of contacts. The three tables have most columns in common, so
// one implementation serves all of them; `tables` says how they differ.

import type { DatabaseSync } from 'node:sqlite'
import type { JsonValue } from '../../journal/event.ts'
import {
  type ContactEventRow,
  type ContactFactRow,
  contactNotFound,
  type ContactRecord,
  type ContactRecordKey,
  type ContactRecordKind,
  type ContactRecordPage,
  type ContactRecordRows,
  type ContactStore,
  type ContactTodoRow,
  type ContactTodoStatus,
} from '../contact-store.ts'
import type { CountedPage } from '../row-page.ts'
import type { ContactRecordCommands, Handlers } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

type Table<Fields extends ContactRecord> = {
  name: string
  /** The columns that only this kind has. */
  columns: string[]
  values(row: Fields): Value[]
  toRow(record: ContactRecord, row: Row): Fields
  order: string
}

type Json = Record<string, JsonValue>

const tables: { [Kind in ContactRecordKind]: Table<ContactRecordRows[Kind]> } = {
  fact: {
    name: 'contact_facts',
    columns: ['content', 'metadata'],
    values: (row: ContactFactRow) => [row.content, JSON.stringify(row.metadata)],
    toRow: (record, row) => ({
      ...record,
      content: row.content as string,
      metadata: fromJson<Json>(row.metadata) ?? {},
    }),
    order: 'position DESC',
  },
  todo: {
    name: 'contact_todos',
    columns: ['content', 'status', 'due_at'],
    values: (row: ContactTodoRow) => [row.content, row.status, row.dueAt],
    toRow: (record, row) => ({
      ...record,
      content: row.content as string,
      status: row.status as ContactTodoStatus,
      dueAt: row.due_at as number | null,
    }),
    order: 'position DESC',
  },
  event: {
    name: 'contact_events',
    columns: ['title', 'description', 'details', 'event_date'],
    values: (row: ContactEventRow) => [row.title, row.description, JSON.stringify(row.details), row.eventDate],
    toRow: (record, row) => ({
      ...record,
      title: row.title as string,
      description: row.description as string | null,
      details: fromJson<Json>(row.details) ?? {},
      eventDate: row.event_date as number | null,
    }),
    // Must be spelled exactly as in the index, or SQLite does not use the index.
    order: 'coalesce(event_date, created_at) DESC, position DESC',
  },
}

function toRecord(row: Row): ContactRecord {
  return {
    id: row.id as string,
    owner: row.owner as string,
    contactId: row.contact_id as string,
    sourceConversationId: row.source_conversation_id as string | null,
    sourceMessageIds: fromJson<string[]>(row.source_message_ids) ?? [],
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
  }
}

type RecordStore = Pick<
  ContactStore,
  'addContactRecord' | 'readContactRecord' | 'updateContactRecord' | 'deleteContactRecord' | 'listContactRecords'
>

export function contactRecordStore({ db, read, write }: PartAccess): RecordStore {
  const reader = recordReader(db)
  return {
    addContactRecord: async (kind, row) => void (await write('addContactRecord', { kind, row })),
    readContactRecord: (kind, key) => read(() => reader.read(kind, key)),
    async updateContactRecord<Kind extends ContactRecordKind>(
      kind: Kind,
      key: ContactRecordKey,
      changes: Partial<ContactRecordRows[Kind]>,
      at: number,
    ) {
      const row = await write('updateContactRecord', { kind, key, changes, at })
      return (row ?? undefined) as ContactRecordRows[Kind] | undefined
    },
    deleteContactRecord: (kind, key) => write('deleteContactRecord', { kind, key }),
    listContactRecords: (kind, contact, page) => read(() => reader.list(kind, contact, page)),
  }
}

const pending: ContactTodoStatus = 'pending'
/** Spelled exactly as in the index. */
const byDueTime = 'coalesce(due_at, 9007199254740991), position'

function recordReader(db: DatabaseSync) {
  const statement = statementCache(db)

  return {
    read<Kind extends ContactRecordKind>(kind: Kind, key: ContactRecordKey): ContactRecordRows[Kind] | undefined {
      const { name, toRow } = tables[kind]
      const row = statement(`SELECT * FROM ${name} WHERE id = ? AND owner = ? AND contact_id = ?`).get(
        key.id,
        key.owner,
        key.contactId,
      )
      return row === undefined ? undefined : toRow(toRecord(row), row)
    },

    list<Kind extends ContactRecordKind>(
      kind: Kind,
      { owner, contactId }: { owner: string; contactId: string },
      { limit, offset, status }: ContactRecordPage,
    ): CountedPage<ContactRecordRows[Kind]> {
      const { name, order, toRow } = tables[kind]
      const byStatus = kind === 'todo' && status !== undefined
      const found = `FROM ${name} WHERE owner = ? AND contact_id = ?${byStatus ? ' AND status = ?' : ''}`
      const values: Value[] = byStatus ? [owner, contactId, status] : [owner, contactId]
      const sorted = byStatus && status === pending ? byDueTime : order
      const { count } = statement(`SELECT count(*) AS count ${found}`).get(...values) as { count: number }
      // `LIMIT a, b` is offset and limit.
      const page = statement(`SELECT * ${found} ORDER BY ${sorted} LIMIT ?, ?`)
      return { ...readPage(page, [...values, offset], limit, (row) => toRow(toRecord(row), row)), total: count }
    },
  }
}

export type ContactRecordWriter = ReturnType<typeof contactRecordWriter>

export function contactRecordWriter(db: DatabaseSync) {
  const reader = recordReader(db)
  const statement = statementCache(db)
  const contact = db.prepare('SELECT 1 FROM contacts WHERE owner = ? AND id = ?')
  /** Null if the owner has no such conversation (any more). */
  const ownConversation = '(SELECT id FROM conversations WHERE id = ? AND owner = ?)'
  const marks = (count: number) => Array.from({ length: count }, () => '?').join(', ')

  function valuesOf(kind: ContactRecordKind, row: ContactRecordRows[ContactRecordKind]): Value[] {
    return (tables[kind] as unknown as Table<ContactRecord>).values(row)
  }

  const handlers: Handlers<ContactRecordCommands> = {
    addContactRecord({ kind, row }) {
      const { name, columns } = tables[kind]
      if (contact.get(row.owner, row.contactId) === undefined) throw contactNotFound(row.contactId)
      statement(
        `INSERT INTO ${name} (id, owner, contact_id, source_conversation_id, source_message_ids, created_at, updated_at,
           ${columns.join(', ')}) VALUES (?, ?, ?, ${ownConversation}, ${marks(3 + columns.length)}) ON CONFLICT (id) DO NOTHING`,
      ).run(
        row.id,
        row.owner,
        row.contactId,
        row.sourceConversationId,
        row.owner,
        JSON.stringify(row.sourceMessageIds),
        row.createdAt,
        row.updatedAt,
        ...valuesOf(kind, row),
      )
      return null
    },
    updateContactRecord({ kind, key, changes, at }) {
      const found = reader.read(kind, key)
      if (found === undefined) return null
      const { name, columns } = tables[kind]
      const row = { ...found, ...changes }
      statement(
        `UPDATE ${name} SET source_conversation_id = ${ownConversation}, source_message_ids = ?, updated_at = ?,
           ${columns.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
      ).run(
        row.sourceConversationId,
        key.owner,
        JSON.stringify(row.sourceMessageIds),
        at,
        ...valuesOf(kind, row),
        key.id,
      )
      return reader.read(kind, key) ?? null
    },
    deleteContactRecord({ kind, key }) {
      const { name } = tables[kind]
      const remove = statement(`DELETE FROM ${name} WHERE id = ? AND owner = ? AND contact_id = ?`)
      return remove.run(key.id, key.owner, key.contactId).changes > 0
    },
  }
  return { handlers, add: handlers.addContactRecord }
}
