// What applying and checking an archive means for its entries, the same for every store.

import { AppError } from '../errors/app-error.ts'
import type { ArchiveCitation, ArchivedContact, ArchiveEntries, ArchivePayload } from './archive-store.ts'
import type { ContactImport, ContactRecordKind } from './contact-store.ts'

export const emptyPayload: ArchivePayload = {
  contacts: [],
  events: [],
  facts: [],
  todos: [],
  keyPoints: [],
  decisions: [],
  actionItems: [],
  participants: [],
}

/** The table of each kind of record, and the column by which an equal record is found. */
export const recordTexts: Readonly<Record<ContactRecordKind, { table: string; column: string }>> = {
  event: { table: 'contact_events', column: 'title' },
  fact: { table: 'contact_facts', column: 'content' },
  todo: { table: 'contact_todos', column: 'content' },
}

export function recordFields(
  kind: ContactRecordKind,
  entry: ArchiveEntries['events' | 'facts' | 'todos'][number],
): object {
  const { contactRef: _ref, contactId: _contact, recordId: _record, citations: _citations, ...fields } = entry
  if (kind === 'event') return { ...fields, details: {} }
  return kind === 'fact' ? { ...fields, metadata: {} } : { ...fields, status: 'pending' }
}

/** `citation` is null for an entry that has none. */
export function* citationsOf(payload: ArchiveEntries): Generator<{ path: string; citation: ArchiveCitation | null }> {
  for (const list of ['contacts', 'events', 'facts', 'todos'] as const) {
    for (const [index, { citations }] of payload[list].entries()) {
      if (citations.length === 0) yield { path: `${list}.${index}`, citation: null }
      for (const [place, citation] of citations.entries()) {
        yield { path: `${list}.${index}.citations.${place}`, citation }
      }
    }
  }
}

export function invalidEntry(path: string, problem: string): AppError {
  return new AppError('archive_entry_invalid', `payload.${path} ${problem}.`, {
    details: { field: `payload.${path}`, errors: [`${path} ${problem}`] },
  })
}

/** The contact that an entry describes. A field without a value leaves an existing contact as it is. */
export function contactOfEntry(entry: ArchivedContact, newId: string): ContactImport {
  const { ref: _ref, citations: _citations, contactId, ...fields } = entry
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
  return { ...given, newId, ...(contactId === null ? {} : { id: contactId }) } as ContactImport
}

/** Throws unless every entry cites messages that the conversation has; `lengthOf` gives the characters of a message. */
export function checkCitations(payload: ArchiveEntries, lengthOf: (messageId: string) => number | undefined): void {
  for (const { path, citation } of citationsOf(payload)) {
    if (citation === null) throw invalidEntry(path, 'cites no message')
    const { messageId, start = 0, end = start } = citation
    const length = lengthOf(messageId)
    if (length === undefined) {
      const problem = `cites the message ${JSON.stringify(messageId)}, which is not in the conversation`
      throw invalidEntry(path, problem)
    }
    if (start < 0 || start > end || end > length) {
      throw invalidEntry(path, `cites the characters ${start} to ${end} of a message with ${length} characters`)
    }
  }
}
