// Archives of conversations: what an agent extracted from a conversation, stored for a
// person to review. Applying an archive writes its contacts and records in one commit; an
// archive that was applied or discarded does not change any more.

import type { ContactRecordKind } from './contact-store.ts'

export type ArchiveStatus = 'ready_for_review' | 'applied' | 'discarded'

/** `start` and `end` are positions in the text of the message, in UTF-16 units. */
export type ArchiveCitation = { messageId: string; start?: number; end?: number }

export type ArchivedContact = {
  /** The name of the contact inside the archive. */
  ref: string
  /** The contact that the entry updates; null if a contact is looked for, or created, when the archive is applied. */
  contactId: string | null
  name: string
  alias: string | null
  email: string | null
  phone: string | null
  company: string | null
  position: string | null
  citations: ArchiveCitation[]
}

/** What events, facts and to-dos of an archive have in common. All times are epoch milliseconds. */
type ArchivedRecord = {
  /** The `ref` of a contact of the archive that the entry is about. */
  contactRef: string | null
  /** The contact that the entry is about, if `contactRef` is null. Set for every entry when the archive is applied. */
  contactId: string | null
  /** The record that the entry became; null before the archive is applied, and if the entry is about no contact. */
  recordId: string | null
  citations: ArchiveCitation[]
}

export type ArchivedEvent = ArchivedRecord & { title: string; description: string | null; eventDate: number | null }

export type ArchivedFact = ArchivedRecord & { content: string }

export type ArchivedTodo = ArchivedRecord & { content: string; dueAt: number | null }

/** The entries that become rows. */
export type ArchiveEntries = {
  contacts: ArchivedContact[]
  events: ArchivedEvent[]
  facts: ArchivedFact[]
  todos: ArchivedTodo[]
}

/** The entries, and the sentences that only the reviewer reads. */
export type ArchivePayload = ArchiveEntries & {
  keyPoints: string[]
  decisions: string[]
  actionItems: string[]
  participants: string[]
}

export const archiveLists: Readonly<Record<ContactRecordKind, 'events' | 'facts' | 'todos'>> = {
  event: 'events',
  fact: 'facts',
  todo: 'todos',
}

export type ArchiveRow = {
  id: string
  owner: string
  conversationId: string
  /** The one-shot run that extracted it. The run may have been removed since. */
  runId: string
  /** Null if the result of the run was not stored as a snapshot. */
  snapshotId: string | null
  status: ArchiveStatus
  /** Counts the changes of the payload. */
  revision: number
  summary: string
  /** True if code computed the archive and no language model wrote it. */
  computed: boolean
  payload: ArchivePayload
  createdAt: number
  updatedAt: number
  appliedAt: number | null
  discardedAt: number | null
}

export type ArchiveApply = {
  id: string
  /** Nothing changes if the archive has another revision. */
  revision: number
  /** The payload of that revision. `recordId` is the id of the record that the entry becomes. */
  payload: ArchivePayload
  /** The id of each contact of the payload, if it has to be created. */
  newContactIds: string[]
  at: number
  contactsMax: number
}

/** How many archives of one conversation are kept; the oldest ones are removed when a new one is written. */
export const archivesKept = 50

export interface ArchiveStore {
  /**
   * Returns the stored row: that of an earlier archive of the same run, if it was not discarded, or else the new one.
   * `conversation_not_found` if the owner does not have the conversation (any more). `archive_entry_invalid` if an entry cites
   * nothing, or something that is not in a message of the conversation.
   */
  createArchive(row: ArchiveRow): Promise<ArchiveRow>
  readArchive(id: string): Promise<ArchiveRow | undefined>
  /** The archive of the conversation that was written last. */
  newestArchive(conversationId: string): Promise<ArchiveRow | undefined>
  /**
   * Replaces the payload if the archive waits for its review and has this revision. Returns the row as it is then; undefined if
   * there is none. Citations are checked as by `createArchive`; `contact_not_found` if the owner has no contact that an entry names.
   */
  changeArchive(change: {
    id: string
    revision: number
    payload: ArchivePayload
    at: number
  }): Promise<ArchiveRow | undefined>
  /**
   * Creates or updates the contacts (matched as by `importContacts`; a contact that exists keeps its name), adds the records,
   * and marks the archive as applied and the conversation as archived, all or nothing. An event, fact or to-do that the
   * contact has already with the same text from the same conversation is not added again. Nothing changes unless the
   * archive waits for its review and has the given revision. Returns the row as it is then; undefined if there is none.
   */
  applyArchive(apply: ArchiveApply): Promise<ArchiveRow | undefined>
  /** Nothing changes unless the archive waits for its review. Returns the row as it is then; undefined if there is none. */
  discardArchive(id: string, at: number): Promise<ArchiveRow | undefined>
}
