// Archives of conversations. An archive is applied in one transaction: its contacts, its
// records, its new status and the mark on the conversation are written together or not at all.

import { AppError } from '../../errors/app-error.ts'
import { checkCitations, contactOfEntry, emptyPayload, recordFields, recordTexts } from '../archive-entries.ts'
import {
  type ArchiveApply,
  archiveLists,
  type ArchiveEntries,
  type ArchivePayload,
  type ArchiveRow,
  archivesKept,
  type ArchiveStore,
} from '../archive-store.ts'
import { contactNotFound, type ContactRecordKind, type ContactRecordRows } from '../contact-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row } from './connection.ts'
import { addRecord } from './contact-record-store.ts'
import { checkRoom, lockContacts, upsertContact } from './contact-store.ts'
import type { PartAccess } from './part-access.ts'

const columns: Columns<ArchiveRow> = {
  id: 'value',
  owner: 'value',
  conversationId: 'value',
  runId: 'value',
  snapshotId: 'value',
  status: 'value',
  revision: 'value',
  summary: 'value',
  computed: 'flag',
  payload: 'json',
  createdAt: 'value',
  updatedAt: 'value',
  appliedAt: 'value',
  discardedAt: 'value',
}
const toArchive = rowReader<ArchiveRow>(columns, { payload: emptyPayload })
const one = (row: Row | undefined) => (row === undefined ? undefined : toArchive(row))

const byId = 'SELECT * FROM conversation_archives WHERE id = ?'

export function archiveStore({ read, write }: PartAccess): ArchiveStore {
  return {
    createArchive: (row) => write((db) => createArchive(db, row)),
    readArchive: (id) => read(async (db) => one(await db.get(byId, id))),
    newestArchive: (conversationId) =>
      read(async (db) =>
        one(
          await db.get(
            'SELECT * FROM conversation_archives WHERE conversation_id = ? ORDER BY position DESC LIMIT 1',
            conversationId,
          ),
        ),
      ),
    changeArchive: ({ id, revision, payload, at }) =>
      write(async (db) => {
        const row = await locked(db, id)
        if (row?.status !== 'ready_for_review' || row.revision !== revision) return row
        await checkMessages(db, payload, row.conversationId)
        await checkContacts(db, row.owner, payload)
        await db.run(
          'UPDATE conversation_archives SET payload = ?, revision = revision + 1, updated_at = ? WHERE id = ?',
          JSON.stringify(payload),
          at,
          id,
        )
        return one(await db.get(byId, id))
      }),
    applyArchive: (apply) =>
      write(async (db) => {
        const row = await locked(db, apply.id)
        if (row?.status !== 'ready_for_review' || row.revision !== apply.revision) return row
        await lockContacts(db, row.owner)
        const payload = await applied(db, row, apply)
        await db.run(
          "UPDATE conversation_archives SET payload = ?, status = 'applied', updated_at = ?, applied_at = ? WHERE id = ?",
          JSON.stringify(payload),
          apply.at,
          apply.at,
          row.id,
        )
        await db.run('UPDATE conversations SET archived_at = ? WHERE id = ?', apply.at, row.conversationId)
        return one(await db.get(byId, row.id))
      }),
    discardArchive: (id, at) =>
      write(async (db) => {
        await db.run(
          `UPDATE conversation_archives SET status = 'discarded', updated_at = ?, discarded_at = ?
           WHERE id = ? AND status = 'ready_for_review'`,
          at,
          at,
          id,
        )
        return one(await db.get(byId, id))
      }),
  }
}

async function locked(db: Db, id: string): Promise<ArchiveRow | undefined> {
  return one(await db.get(`${byId} FOR NO KEY UPDATE`, id))
}

async function createArchive(db: Db, row: ArchiveRow): Promise<ArchiveRow> {
  const conversation = await db.get(
    'SELECT id FROM conversations WHERE id = ? AND owner = ? FOR NO KEY UPDATE',
    row.conversationId,
    row.owner,
  )
  if (conversation === undefined) {
    throw new AppError('conversation_not_found', 'The conversation was deleted while it was archived.')
  }
  const known = await db.get(
    `SELECT * FROM conversation_archives WHERE conversation_id = ? AND run_id = ? AND status <> 'discarded'
     ORDER BY position DESC LIMIT 1`,
    row.conversationId,
    row.runId,
  )
  if (known !== undefined) return toArchive(known)
  await checkMessages(db, row.payload, row.conversationId)
  await insertRow(db, 'conversation_archives', columnsOf(columns, row))
  await db.run(
    `DELETE FROM conversation_archives WHERE position IN (
       SELECT position FROM conversation_archives WHERE conversation_id = ? ORDER BY position DESC OFFSET ?)`,
    row.conversationId,
    archivesKept,
  )
  return row
}

async function checkMessages(db: Db, payload: ArchiveEntries, conversationId: string): Promise<void> {
  const { contacts, events, facts, todos } = payload
  const cited = [...contacts, ...events, ...facts, ...todos].flatMap(({ citations }) => citations)
  const lengths = new Map<string, number>()
  for (const { messageId } of cited) {
    if (lengths.has(messageId)) continue
    const sql = 'SELECT content FROM messages WHERE id = ? AND conversation_id = ?'
    const row = await db.get(sql, messageId, conversationId)
    // Not `length` of the database: it counts characters, and we count UTF-16 units.
    if (row !== undefined) lengths.set(messageId, (row['content'] as string).length)
  }
  checkCitations(payload, (messageId) => lengths.get(messageId))
}

async function checkContacts(db: Db, owner: string, payload: ArchiveEntries): Promise<void> {
  const { contacts, events, facts, todos } = payload
  for (const { contactId } of [...contacts, ...events, ...facts, ...todos]) await checkContact(db, owner, contactId)
}

async function checkContact(db: Db, owner: string, contactId: string | null): Promise<void> {
  if (contactId === null) return
  const found = await db.get('SELECT serial FROM contacts WHERE owner = ? AND id = ?', owner, contactId)
  if (found === undefined) throw contactNotFound(contactId)
}

async function applied(db: Db, { owner, conversationId }: ArchiveRow, apply: ArchiveApply): Promise<ArchivePayload> {
  const { payload, newContactIds, at, contactsMax } = apply
  const contactIds = new Map<string, string>()
  const people = []
  for (const [index, entry] of payload.contacts.entries()) {
    await checkContact(db, owner, entry.contactId)
    const wanted = contactOfEntry(entry, newContactIds[index] as string)
    const { id: contactId, outcome } = await upsertContact(db, owner, wanted, at, { keepName: true })
    if (outcome === 'created') await checkRoom(db, owner, 0, contactsMax)
    if (!contactIds.has(entry.ref)) contactIds.set(entry.ref, contactId)
    people.push({ ...entry, contactId })
  }
  const result: ArchivePayload = { ...payload, contacts: people }
  for (const kind of ['event', 'fact', 'todo'] as const) {
    const entries = []
    for (const entry of payload[archiveLists[kind]]) {
      const { contactRef, recordId, citations } = entry
      const contactId = contactRef === null ? entry.contactId : (contactIds.get(contactRef) ?? null)
      if (contactId === null || recordId === null) {
        entries.push({ ...entry, contactId, recordId: null })
        continue
      }
      const row = {
        id: recordId,
        owner,
        contactId,
        sourceConversationId: conversationId,
        sourceMessageIds: [...new Set(citations.map(({ messageId }) => messageId))],
        createdAt: at,
        updatedAt: at,
        ...recordFields(kind, entry),
      } as ContactRecordRows[ContactRecordKind]
      entries.push({ ...entry, contactId, recordId: await applyRecord(db, kind, row) })
    }
    Object.assign(result, { [archiveLists[kind]]: entries })
  }
  return result
}

/** The id of the record that the entry becomes: of one with the same text from the same conversation, or a new one. */
async function applyRecord(
  db: Db,
  kind: ContactRecordKind,
  row: ContactRecordRows[ContactRecordKind],
): Promise<string> {
  const { table, column } = recordTexts[kind]
  const text = kind === 'event' ? (row as ContactRecordRows['event']).title : (row as { content: string }).content
  const same = await db.get(
    `SELECT id FROM ${table} WHERE owner = ? AND contact_id = ? AND source_conversation_id = ? AND ${column} = ? LIMIT 1`,
    row.owner,
    row.contactId,
    row.sourceConversationId,
    text,
  )
  if (same !== undefined) return same['id'] as string
  await addRecord(db, kind, row)
  return row.id
}
