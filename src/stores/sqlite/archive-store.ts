// Archives of conversations. An archive is applied by one command: its contacts, its records,
// its new status and the mark on the conversation are written together or not at all.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { checkCitations, contactOfEntry, emptyPayload, recordFields, recordTexts } from '../archive-entries.ts'
import {
  type ArchiveApply,
  type ArchivedContact,
  archiveLists,
  type ArchiveEntries,
  type ArchivePayload,
  type ArchiveRow,
  archivesKept,
  type ArchiveStatus,
  type ArchiveStore,
} from '../archive-store.ts'
import { contactNotFound, type ContactRecordKind, type ContactRecordRows } from '../contact-store.ts'
import type { ArchiveCommands, Handlers } from './commands.ts'
import { type Row, statementCache } from './connection.ts'
import type { ContactRecordWriter } from './contact-record-store.ts'
import type { ContactWriter } from './contact-store.ts'
import { fromJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'

function toArchive(row: Row): ArchiveRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    conversationId: row.conversation_id as string,
    runId: row.run_id as string,
    snapshotId: row.snapshot_id as string | null,
    status: row.status as ArchiveStatus,
    revision: row.revision as number,
    summary: row.summary as string,
    computed: row.computed === 1,
    payload: fromJson<ArchivePayload>(row.payload) ?? emptyPayload,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    appliedAt: row.applied_at as number | null,
    discardedAt: row.discarded_at as number | null,
  }
}

export function archiveStore({ db, read, write }: PartAccess): ArchiveStore {
  const reader = archiveReader(db)
  return {
    createArchive: (row) => write('createArchive', row),
    readArchive: (id) => read(() => reader.read(id)),
    newestArchive: (conversationId) => read(() => reader.newest(conversationId)),
    changeArchive: async (change) => (await write('changeArchive', change)) ?? undefined,
    applyArchive: async (apply) => (await write('applyArchive', apply)) ?? undefined,
    discardArchive: async (id, at) => (await write('discardArchive', { id, at })) ?? undefined,
  }
}

function archiveReader(db: DatabaseSync) {
  const byId = db.prepare('SELECT * FROM conversation_archives WHERE id = ?')
  const newest = db.prepare(
    'SELECT * FROM conversation_archives WHERE conversation_id = ? ORDER BY position DESC LIMIT 1',
  )
  const one = (row: Row | undefined) => (row === undefined ? undefined : toArchive(row))
  return {
    read: (id: string) => one(byId.get(id)),
    newest: (conversationId: string) => one(newest.get(conversationId)),
  }
}

type Parts = { contacts: Pick<ContactWriter, 'upsert' | 'checkRoom'>; records: Pick<ContactRecordWriter, 'add'> }

export function archiveHandlers(db: DatabaseSync, { contacts, records }: Parts): Handlers<ArchiveCommands> {
  const reader = archiveReader(db)
  const statement = statementCache(db)
  const insert = db.prepare(
    `INSERT INTO conversation_archives (id, owner, conversation_id, run_id, snapshot_id, status, revision, computed,
       created_at, updated_at, applied_at, discarded_at, summary, payload)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const prune = db.prepare(
    `DELETE FROM conversation_archives WHERE position IN (
       SELECT position FROM conversation_archives WHERE conversation_id = ? ORDER BY position DESC LIMIT -1 OFFSET ?)`,
  )
  const ofRun = db.prepare(
    `SELECT * FROM conversation_archives WHERE conversation_id = ? AND run_id = ? AND status <> 'discarded'
     ORDER BY position DESC LIMIT 1`,
  )
  const conversation = db.prepare('SELECT 1 FROM conversations WHERE id = ? AND owner = ?')
  const markConversation = db.prepare('UPDATE conversations SET archived_at = ? WHERE id = ?')
  const contact = db.prepare('SELECT 1 FROM contacts WHERE owner = ? AND id = ?')
  const message = db.prepare('SELECT content FROM messages WHERE id = ? AND conversation_id = ?')
  const setPayload = db.prepare(
    'UPDATE conversation_archives SET payload = ?, revision = revision + 1, updated_at = ? WHERE id = ?',
  )
  const setApplied = db.prepare(
    "UPDATE conversation_archives SET payload = ?, status = 'applied', updated_at = ?, applied_at = ? WHERE id = ?",
  )
  const setDiscarded = db.prepare(
    "UPDATE conversation_archives SET status = 'discarded', updated_at = ?, discarded_at = ? WHERE id = ?",
  )

  function checkMessages(payload: ArchiveEntries, conversationId: string): void {
    const lengths = new Map<string, number | undefined>()
    checkCitations(payload, (messageId) => {
      if (!lengths.has(messageId)) {
        lengths.set(messageId, (message.get(messageId, conversationId)?.content as string | undefined)?.length)
      }
      return lengths.get(messageId)
    })
  }

  function checkContacts(owner: string, payload: ArchiveEntries): void {
    const { contacts: people, events, facts, todos } = payload
    for (const { contactId } of [...people, ...events, ...facts, ...todos]) {
      if (contactId !== null && contact.get(owner, contactId) === undefined) throw contactNotFound(contactId)
    }
  }

  /** The id of the contact that the entry becomes. */
  function applyContact(
    owner: string,
    entry: ArchivedContact,
    newId: string,
    { at, contactsMax }: ArchiveApply,
  ): string {
    const { contactId } = entry
    if (contactId !== null && contact.get(owner, contactId) === undefined) throw contactNotFound(contactId)
    const wanted = contactOfEntry(entry, newId)
    const { id, outcome } = contacts.upsert(owner, wanted, at, { keepName: true })
    if (outcome === 'created') contacts.checkRoom(owner, 0, contactsMax)
    return id
  }

  /** The id of the record that the entry becomes: of one with the same text from the same conversation, or a new one. */
  function applyRecord(kind: ContactRecordKind, row: ContactRecordRows[ContactRecordKind]): string {
    const { table, column } = recordTexts[kind]
    const text = kind === 'event' ? (row as ContactRecordRows['event']).title : (row as { content: string }).content
    const same = statement(
      `SELECT id FROM ${table} WHERE owner = ? AND contact_id = ? AND source_conversation_id = ? AND ${column} = ? LIMIT 1`,
    ).get(row.owner, row.contactId, row.sourceConversationId, text)
    if (same !== undefined) return same.id as string
    records.add({ kind, row })
    return row.id
  }

  function applied({ owner, conversationId }: ArchiveRow, apply: ArchiveApply): ArchivePayload {
    const { payload, newContactIds, at } = apply
    const contactIds = new Map<string, string>()
    const people = payload.contacts.map((entry, index) => {
      const contactId = applyContact(owner, entry, newContactIds[index] as string, apply)
      if (!contactIds.has(entry.ref)) contactIds.set(entry.ref, contactId)
      return { ...entry, contactId }
    })
    const result: ArchivePayload = { ...payload, contacts: people }
    for (const kind of ['event', 'fact', 'todo'] as const) {
      const list = payload[archiveLists[kind]]
      const entries = list.map((entry) => {
        const { contactRef, recordId, citations } = entry
        const contactId = contactRef === null ? entry.contactId : (contactIds.get(contactRef) ?? null)
        if (contactId === null || recordId === null) return { ...entry, contactId, recordId: null }
        const common = {
          id: recordId,
          owner,
          contactId,
          sourceConversationId: conversationId,
          sourceMessageIds: [...new Set(citations.map(({ messageId }) => messageId))],
          createdAt: at,
          updatedAt: at,
        }
        const row = { ...common, ...recordFields(kind, entry) } as ContactRecordRows[ContactRecordKind]
        return { ...entry, contactId, recordId: applyRecord(kind, row) }
      })
      Object.assign(result, { [archiveLists[kind]]: entries })
    }
    return result
  }

  return {
    createArchive(row) {
      if (conversation.get(row.conversationId, row.owner) === undefined) {
        throw new AppError('conversation_not_found', 'The conversation was deleted while it was archived.')
      }
      const known = ofRun.get(row.conversationId, row.runId)
      if (known !== undefined) return toArchive(known)
      checkMessages(row.payload, row.conversationId)
      insert.run(
        row.id,
        row.owner,
        row.conversationId,
        row.runId,
        row.snapshotId,
        row.status,
        row.revision,
        row.computed ? 1 : 0,
        row.createdAt,
        row.updatedAt,
        row.appliedAt,
        row.discardedAt,
        row.summary,
        JSON.stringify(row.payload),
      )
      prune.run(row.conversationId, archivesKept)
      return row
    },
    changeArchive({ id, revision, payload, at }) {
      const row = reader.read(id)
      if (row === undefined || row.status !== 'ready_for_review' || row.revision !== revision) return row ?? null
      checkMessages(payload, row.conversationId)
      checkContacts(row.owner, payload)
      setPayload.run(JSON.stringify(payload), at, id)
      return reader.read(id) ?? null
    },
    applyArchive(apply) {
      const row = reader.read(apply.id)
      if (row === undefined || row.status !== 'ready_for_review' || row.revision !== apply.revision) return row ?? null
      const payload = applied(row, apply)
      setApplied.run(JSON.stringify(payload), apply.at, apply.at, row.id)
      markConversation.run(apply.at, row.conversationId)
      return reader.read(row.id) ?? null
    },
    discardArchive({ id, at }) {
      if (reader.read(id)?.status === 'ready_for_review') setDiscarded.run(at, at, id)
      return reader.read(id) ?? null
    },
  }
}
