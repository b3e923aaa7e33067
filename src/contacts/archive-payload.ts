// From the answer of the archive agent to the payload of an archive, and the checks of the
// references inside a payload. Pure. Whatever a model may write is cut or dropped so that
// every entry can be stored; only citations are never repaired.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { cutText } from '../kit/cut-text.ts'
import type { ArchiveCitation, ArchivedContact, ArchiveEntries, ArchivePayload } from '../stores/archive-store.ts'
import { contactLimits, isEmail } from './contact-limits.ts'
import { givenTime } from './given-time.ts'
import { isRecord } from '../kit/is-record.ts'

export const archiveLimits = {
  /** Of each kind. */
  entries: 50,
  citations: 20,
  refChars: 50,
  summaryChars: 10_000,
} as const

type JsonObject = Record<string, JsonValue>

/**
 * `contactId` is the contact of the conversation: entries that name nobody are about this contact. An entry that names a `ref`
 * which the answer does not have is about nobody, until a reviewer says who it is.
 */
export function payloadOf(answer: JsonValue | undefined, contactId: string | null): ArchivePayload {
  const given = objectOf(answer)
  const contacts = entriesOf(given['contacts']).flatMap((entry) => {
    const contact = contactOf(entry)
    return contact === null ? [] : [contact]
  })
  const refs = new Set(contacts.map(({ ref }) => ref))
  const ofContact = (entry: JsonObject) => {
    const named = textOf(entry['contactRef'], archiveLimits.refChars)
    const contactRef = named !== null && refs.has(named) ? named : null
    return {
      contactRef,
      contactId: named === null ? contactId : null,
      recordId: null,
      citations: citationsOf(entry['citations']),
    }
  }
  const content = (entry: JsonObject) => textOf(entry['content'], contactLimits.contentChars)
  return {
    contacts,
    events: entriesOf(given['events']).flatMap((entry) => {
      const title = textOf(entry['title'], contactLimits.titleChars)
      const description = textOf(entry['description'], contactLimits.contentChars)
      if (title === null) return []
      return [{ ...ofContact(entry), title, description, eventDate: timeOf(entry['eventDate']) }]
    }),
    facts: entriesOf(given['facts']).flatMap((entry) => {
      const text = content(entry)
      return text === null ? [] : [{ ...ofContact(entry), content: text }]
    }),
    todos: entriesOf(given['todos']).flatMap((entry) => {
      const text = content(entry)
      return text === null ? [] : [{ ...ofContact(entry), content: text, dueAt: timeOf(entry['dueAt']) }]
    }),
    keyPoints: textsOf(given['keyPoints']),
    decisions: textsOf(given['decisions']),
    actionItems: textsOf(given['actionItems']),
    participants: textsOf(given['participants']),
  }
}

/** Throws `archive_entry_invalid` if two contacts have the same ref, or if an entry names a ref that no contact has. */
export function checkRefs({ contacts, events, facts, todos }: ArchiveEntries): void {
  const refs = new Set<string>()
  for (const [index, { ref }] of contacts.entries()) {
    if (refs.has(ref)) throw invalidRef(`contacts.${index}.ref`, `repeats the ref ${JSON.stringify(ref)}`)
    refs.add(ref)
  }
  for (const [name, list] of Object.entries({ events, facts, todos })) {
    for (const [index, { contactRef }] of list.entries()) {
      if (contactRef !== null && !refs.has(contactRef)) {
        const problem = `names the ref ${JSON.stringify(contactRef)}, which no entry of contacts has`
        throw invalidRef(`${name}.${index}.contactRef`, problem)
      }
    }
  }
}

function invalidRef(path: string, problem: string): AppError {
  return new AppError('archive_entry_invalid', `payload.${path} ${problem}.`, {
    details: { field: `payload.${path}`, errors: [`${path} ${problem}`] },
  })
}

function contactOf(entry: JsonObject): ArchivedContact | null {
  const name = textOf(entry['name'], contactLimits.nameChars)
  const ref = textOf(entry['ref'], archiveLimits.refChars)
  if (name === null || ref === null) return null
  const email = textOf(entry['email'], contactLimits.emailChars)
  return {
    ref,
    contactId: null,
    name,
    alias: textOf(entry['alias'], contactLimits.nameChars),
    email: email !== null && isEmail(email) ? email : null,
    phone: textOf(entry['phone'], contactLimits.phoneChars),
    company: textOf(entry['company'], contactLimits.nameChars),
    position: textOf(entry['position'], contactLimits.nameChars),
    citations: citationsOf(entry['citations']),
  }
}

/** Positions that are no range are dropped; the message is still cited. */
function citationsOf(value: JsonValue | undefined): ArchiveCitation[] {
  return listOf(value, archiveLimits.citations).flatMap((item) => {
    const { messageId, start, end } = objectOf(item)
    if (typeof messageId !== 'string') return []
    return [isPosition(start) && isPosition(end) && start < end ? { messageId, start, end } : { messageId }]
  })
}

function isPosition(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function timeOf(value: JsonValue | undefined): number | null {
  return typeof value === 'string' || typeof value === 'number' ? givenTime(value) : null
}

function textsOf(value: JsonValue | undefined): string[] {
  return listOf(value, archiveLimits.entries).flatMap((item) => textOf(item, contactLimits.titleChars) ?? [])
}

/** Trimmed; null if there is no text. */
function textOf(value: JsonValue | undefined, charsMax: number): string | null {
  const text = typeof value === 'string' ? (cutText(value.trim(), charsMax)[0] ?? '').trim() : ''
  return text === '' ? null : text
}

function entriesOf(value: JsonValue | undefined): JsonObject[] {
  return listOf(value, archiveLimits.entries).map(objectOf)
}

function listOf(value: JsonValue | undefined, max: number): JsonValue[] {
  return Array.isArray(value) ? value.slice(0, max) : []
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isRecord(value) ? value : {}
}
