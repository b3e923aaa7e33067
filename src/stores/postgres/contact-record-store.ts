// Facts, to-dos and events of contacts. The three tables have most columns in common, so one
// implementation serves all of them; `tables` says how they differ.

import {
  contactNotFound,
  type ContactRecordKey,
  type ContactRecordKind,
  type ContactRecordRows,
  type ContactStore,
  type ContactTodoStatus,
} from '../contact-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row, Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

const common = {
  id: 'value',
  owner: 'value',
  contactId: 'value',
  sourceConversationId: 'value',
  sourceMessageIds: 'json',
  createdAt: 'value',
  updatedAt: 'value',
} as const

const columns: { [Kind in ContactRecordKind]: Columns<ContactRecordRows[Kind]> } = {
  fact: { ...common, content: 'value', metadata: 'json' },
  todo: { ...common, content: 'value', status: 'value', dueAt: 'value' },
  event: { ...common, title: 'value', description: 'value', details: 'json', eventDate: 'value' },
}

const tables: Readonly<Record<ContactRecordKind, { name: string; order: string; long: string[] }>> = {
  fact: { name: 'contact_facts', order: 'position DESC', long: ['content', 'metadata', 'source_message_ids'] },
  todo: { name: 'contact_todos', order: 'position DESC', long: ['content', 'source_message_ids'] },
  event: {
    name: 'contact_events',
    order: 'coalesce(event_date, created_at) DESC, position DESC',
    long: ['title', 'description', 'details', 'source_message_ids'],
  },
}

type AnyRecord = ContactRecordRows[ContactRecordKind]

const readers = {
  fact: rowReader<ContactRecordRows['fact']>(columns.fact, { sourceMessageIds: [], metadata: {} }),
  todo: rowReader<ContactRecordRows['todo']>(columns.todo, { sourceMessageIds: [] }),
  event: rowReader<ContactRecordRows['event']>(columns.event, { sourceMessageIds: [], details: {} }),
}

function toRecord<Kind extends ContactRecordKind>(kind: Kind): (row: Row) => ContactRecordRows[Kind] {
  return readers[kind] as (row: Row) => ContactRecordRows[Kind]
}

type RecordStore = Pick<
  ContactStore,
  'addContactRecord' | 'readContactRecord' | 'updateContactRecord' | 'deleteContactRecord' | 'listContactRecords'
>

const pending: ContactTodoStatus = 'pending'

export function contactRecordStore({ read, write }: PartAccess): RecordStore {
  return {
    addContactRecord: (kind, row) => write((db) => addRecord(db, kind, row)),
    readContactRecord: (kind, key) => read((db) => readRecord(db, kind, key)),
    updateContactRecord: <Kind extends ContactRecordKind>(
      kind: Kind,
      key: ContactRecordKey,
      changes: Partial<ContactRecordRows[Kind]>,
      at: number,
    ) =>
      write(async (db) => {
        const found = await readRecord(db, kind, key)
        if (found === undefined) return undefined
        const stored = await storedColumns(db, kind, { ...found, ...changes, updatedAt: at })
        const names = Object.keys(stored).filter((name) => !['id', 'owner', 'contact_id', 'created_at'].includes(name))
        await db.run(
          `UPDATE ${tables[kind].name} SET ${names.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
          ...names.map((name) => stored[name] as Value),
          key.id,
        )
        return await readRecord(db, kind, key)
      }),
    deleteContactRecord: (kind, key) =>
      write(async (db) => {
        const sql = `DELETE FROM ${tables[kind].name} WHERE id = ? AND owner = ? AND contact_id = ?`
        return (await db.run(sql, key.id, key.owner, key.contactId)) > 0
      }),
    listContactRecords: (kind, { owner, contactId }, { limit, offset, status }) =>
      read(async (db) => {
        const { name, order, long } = tables[kind]
        const byStatus = kind === 'todo' && status !== undefined
        const found = `FROM ${name} WHERE owner = ? AND contact_id = ?${byStatus ? ' AND status = ?' : ''}`
        const values: Value[] = byStatus ? [owner, contactId, status] : [owner, contactId]
        const sorted = byStatus && status === pending ? 'due_at NULLS LAST, position' : order
        const total = Number((await db.get(`SELECT count(*) AS count ${found}`, ...values))?.['count'])
        const sql = `SELECT * ${found} ORDER BY ${sorted}`
        return { ...(await readPage(db, { sql, values, limit, offset, long }, toRecord(kind))), total }
      }),
  }
}

async function readRecord<Kind extends ContactRecordKind>(
  db: Db,
  kind: Kind,
  key: ContactRecordKey,
): Promise<ContactRecordRows[Kind] | undefined> {
  const sql = `SELECT * FROM ${tables[kind].name} WHERE id = ? AND owner = ? AND contact_id = ?`
  const row = await db.get(sql, key.id, key.owner, key.contactId)
  return row === undefined ? undefined : toRecord(kind)(row)
}

/** A source conversation that the owner does not have (any more) is stored as null. */
async function storedColumns(db: Db, kind: ContactRecordKind, row: AnyRecord): Promise<Record<string, Value>> {
  const stored = columnsOf(columns[kind] as Columns<AnyRecord>, row)
  const source = row.sourceConversationId
  const known =
    source === null
      ? undefined
      : await db.get('SELECT id FROM conversations WHERE id = ? AND owner = ? FOR KEY SHARE', source, row.owner)
  return { ...stored, source_conversation_id: known === undefined ? null : source }
}

export async function addRecord(db: Db, kind: ContactRecordKind, row: AnyRecord): Promise<void> {
  const contact = await db.get(
    'SELECT serial FROM contacts WHERE owner = ? AND id = ? FOR KEY SHARE',
    row.owner,
    row.contactId,
  )
  if (contact === undefined) throw contactNotFound(row.contactId)
  await insertRow(db, tables[kind].name, await storedColumns(db, kind, row), 'ON CONFLICT (id) DO NOTHING')
}
