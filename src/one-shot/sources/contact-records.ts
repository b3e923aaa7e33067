// Reads one contact with its records and signals, for the agents that are about one contact.
// The number of records is bounded, and the model is given as many as fit, the most
// important first.

import type { JsonValue } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { type ContactSignals, contactSignals, isOverdue } from '../../contacts/signals.ts'
import { dateOf } from '../../contacts/utc-days.ts'
import type { ContactActivity, ContactActivityStore } from '../../stores/contact-activity-store.ts'
import {
  type ContactEventRow,
  type ContactFactRow,
  contactNotFound,
  type ContactRow,
  type ContactStore,
  type ContactTodoRow,
} from '../../stores/contact-store.ts'
import type { ConversationRow, ConversationStore } from '../../stores/conversation-store.ts'
import type { MessageStore } from '../../stores/message-store.ts'
import { takeThatFit } from './fit-tokens.ts'
import type { Citable, CitationType, JsonObject } from './source.ts'
import { shorten } from './wording.ts'

export type ContactSourceStore = Pick<ContactStore, 'readContact' | 'listContactRecords'> &
  ContactActivityStore &
  Pick<ConversationStore, 'listConversationsOfContact'> &
  Pick<MessageStore, 'listMessages'>

/** A record that the model is given and that an answer can cite. */
export type ReadRecord = {
  id: string
  type: Extract<CitationType, 'conversation' | 'event' | 'fact' | 'todo'>
  /** When it happened or is due; null for facts, and for to-dos without a due time. */
  at: number | null
  /** A few words that say what it is. */
  label: string
  json: JsonObject
  /** Of a to-do. */
  open?: boolean
  overdue?: boolean
}

export type ReadContact = {
  contact: ContactRow
  signals: ContactSignals
  activity: ContactActivity
  /** The records that are given to the model, the most important first. */
  records: ReadRecord[]
  /** Records that were read and did not fit. */
  omitted: number
  /** What the signals and records come from, without values that change with the clock. */
  hashed: JsonValue
}

export type ReadLimits = { conversations: number; records: number; messages: number }

/** Of the records; the contact and the signals are always given. */
const tokensMax = 8_000
const textCharsMax = 1_000
const messageCharsMax = 300
const profileCharsMax = 2_000

export async function readContactRecords(
  store: ContactSourceStore,
  key: { owner: string; contactId: string },
  limits: ReadLimits,
  now: number,
  /** Records for which it returns false are not given to the model. */
  wanted: (record: ReadRecord) => boolean = () => true,
): Promise<ReadContact> {
  const { owner, contactId } = key
  const contact = await store.readContact(owner, contactId)
  if (contact === undefined) throw contactNotFound(contactId)
  const page = { limit: limits.records, offset: 0 }
  const [activities, conversations, events, facts, todos] = await Promise.all([
    store.contactActivity(owner, [contactId]),
    store.listConversationsOfContact(owner, contactId, { limit: limits.conversations, offset: 0 }),
    store.listContactRecords('event', key, page),
    store.listContactRecords('fact', key, page),
    store.listContactRecords('todo', key, page),
  ])
  const activity = activities[0] ?? { contactId, conversations: [], events: [], todos: [] }
  const signals = contactSignals({ contact, ...activity }, now)
  const read = [
    ...todos.rows.map((todo) => todoRecord(todo, now)),
    ...events.rows.map(eventRecord),
    ...(await Promise.all(conversations.rows.map((row) => conversationRecord(store, row, limits.messages)))),
    ...facts.rows.map(factRecord),
  ].filter(wanted)
  const { taken, omitted } = takeThatFit(byImportance(read, now), tokensMax, ({ json }) => json)
  const hashed = {
    contact: contactJson(contact),
    records: read.map(({ json }) => json).sort((left, right) => compareIds(left, right)),
    activity: activity,
  }
  return { contact, signals, activity, records: taken, omitted, hashed }
}

function compareIds(left: JsonObject, right: JsonObject): number {
  return String(left['id']) < String(right['id']) ? -1 : 1
}

/** Open to-dos, coming events, conversations, facts, then what is over, each group the nearest to now first. */
function byImportance(records: readonly ReadRecord[], now: number): ReadRecord[] {
  const rank = ({ type, at, open }: ReadRecord) => {
    if (type === 'todo') return open === true ? 0 : 5
    if (type === 'event') return at !== null && at > now ? 1 : 4
    return type === 'conversation' ? 2 : 3
  }
  const distance = ({ at }: ReadRecord) => (at === null ? Number.MAX_SAFE_INTEGER : Math.abs(now - at))
  return records.toSorted((left, right) => rank(left) - rank(right) || distance(left) - distance(right))
}

/** What the model needs to know about a person. Addresses and numbers are left out: they say nothing about the relationship. */
export function contactJson(contact: ContactRow): JsonObject {
  const { id, name, alias, company, position, note, tags } = contact
  const { otherEmails: _emails, otherPhones: _phones, ...profile } = contact.profile
  const small = JSON.stringify(profile).length <= profileCharsMax
  const birthday = typeof profile['birthday'] === 'string' ? { birthday: profile['birthday'].slice(0, 10) } : {}
  return {
    id,
    name,
    alias,
    company,
    position,
    note: note === null ? null : bounded(note),
    tags,
    profile: small ? profile : birthday,
    addedOn: dateOf(contact.createdAt),
  }
}

function todoRecord(todo: ContactTodoRow, now: number): ReadRecord {
  const { id, content, status, dueAt } = todo
  const open = status === 'pending'
  const json = { id, content: bounded(content), status, dueAt: dueAt === null ? null : isoTime(dueAt) }
  return { id, type: 'todo', at: dueAt, label: content, open, overdue: isOverdue(todo, now), json }
}

function eventRecord({ id, title, description, eventDate, createdAt }: ContactEventRow): ReadRecord {
  const at = eventDate ?? createdAt
  const json = { id, title, description: description === null ? null : bounded(description), date: isoTime(at) }
  return { id, type: 'event', at, label: title, json }
}

function factRecord({ id, content, createdAt }: ContactFactRow): ReadRecord {
  const json = { id, content: bounded(content), notedOn: dateOf(createdAt) }
  return { id, type: 'fact', at: null, label: content, json }
}

async function conversationRecord(
  store: Pick<MessageStore, 'listMessages'>,
  { id, title, summary, lastMessageAt, createdAt }: ConversationRow,
  messagesMax: number,
): Promise<ReadRecord> {
  const at = lastMessageAt ?? createdAt
  const { rows } = messagesMax === 0 ? { rows: [] } : await store.listMessages(id, { limit: messagesMax })
  const spoken = rows.filter(({ role, content }) => (role === 'user' || role === 'assistant') && content !== '')
  const messages = spoken.map(({ role, content }) => ({ role, content: shorten(content, messageCharsMax) }))
  const label = title ?? summary ?? spoken.at(-1)?.content ?? ''
  const json = { id, title, summary: summary === null ? null : bounded(summary), date: isoTime(at), messages }
  return { id, type: 'conversation', at, label, json }
}

function bounded(text: string): string {
  return text.length <= textCharsMax ? text : shorten(text, textCharsMax)
}

export function citableOf(records: readonly ReadRecord[]): Citable[] {
  return records.map(({ id, type }) => ({ source: id, type }))
}

/** The records by kind, as the model is given them. */
export function recordsJson(records: readonly ReadRecord[]): JsonObject {
  const of = (type: ReadRecord['type']) => records.filter((record) => record.type === type).map(({ json }) => json)
  return { conversations: of('conversation'), events: of('event'), facts: of('fact'), todos: of('todo') }
}

/** Interactions that are over, the newest first. */
export function pastInteractions(records: readonly ReadRecord[], now: number): ReadRecord[] {
  return records
    .filter(
      ({ type, at }) =>
        (type === 'conversation' || type === 'event') && at !== null && (type === 'conversation' || at <= now),
    )
    .toSorted((left, right) => (right.at ?? 0) - (left.at ?? 0))
}
