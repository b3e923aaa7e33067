// `search_contacts`, `get_contact` and `add_contact_fact`: the user's own contacts. The
// owner always comes from the context, never from the model. Outputs are bounded by the
// number of records and by the length of each text. They are for chats only: the stored
// result of a one-shot agent is valid as long as its source is unchanged, so that agent
// must not read contacts beside its source.

import { createHash } from 'node:crypto'
import type { JsonValue } from '../journal/event.ts'
import { isoTime } from '../kit/clock.ts'
import { shownConversationIdOrNull } from '../kit/conversation-id.ts'
import type { ContactRow, ContactStore } from '../stores/contact-store.ts'
import { excerpt, quoted, textField } from './excerpt.ts'
import type { Tool, ToolResult } from './tool.ts'

const limitDefault = 10
const limitMax = 50
/** Of each kind, in `get_contact`. */
const recordsMax = 10
const factCharsMax = 2_000
/** Of one text in an output; the whole text is in the contact. */
const textCharsMax = 1_000
const tagsShownMax = 20

type Contacts = Pick<ContactStore, 'readContact' | 'listContacts' | 'listContactRecords' | 'addContactRecord'>

const contactId = { type: 'string', minLength: 1, maxLength: 200, description: 'The id of the contact.' }

export function createContactTools(contacts: Contacts): Tool[] {
  return [searchContacts(contacts), getContact(contacts), addContactFact(contacts)]
}

function searchContacts(contacts: Contacts): Tool {
  return {
    name: 'search_contacts',
    description:
      'Searches the contacts of the user by words in their names, companies, positions, emails, phones and tags.',
    effect: 'read',
    confirm: 'never',
    audience: 'chats',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', maxLength: 200, description: 'Words that must all occur; empty for all contacts.' },
        tag: { type: 'string', minLength: 1, maxLength: 100, description: 'Only contacts with exactly this tag.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: limitMax,
          description: `How many contacts at most; ${limitDefault} when absent.`,
        },
      },
      required: ['query'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    outputCharsMax: 60_000,
    describe: (input) => `Search the contacts for ${quoted(textField(input, 'query'))}`,
    async run(input, { owner }) {
      const search = textField(input, 'query')
      const tag = textField(input, 'tag')
      const { limit = limitDefault } = input as { limit?: number }
      const page = { limit, offset: 0, search, ...(tag === '' ? {} : { tag }) }
      const { rows, total } = await contacts.listContacts(owner, page)
      return {
        ok: true,
        output: { total, contacts: rows.map(shortView) },
        summary: `${total === 1 ? '1 contact' : `${total} contacts`} found for ${quoted(search, 60)}.`,
      }
    },
  }
}

function getContact(contacts: Contacts): Tool {
  return {
    name: 'get_contact',
    description: 'Reads one contact of the user, with its newest facts and events and its open to-dos.',
    effect: 'read',
    confirm: 'never',
    audience: 'chats',
    inputSchema: { type: 'object', properties: { contactId }, required: ['contactId'], additionalProperties: false },
    timeoutMs: 10_000,
    outputCharsMax: 60_000,
    describe: (input) => `Read the contact ${quoted(textField(input, 'contactId'))}`,
    async run(input, { owner }) {
      const id = textField(input, 'contactId')
      const row = await contacts.readContact(owner, id)
      if (row === undefined) return noContact(id)
      const key = { owner, contactId: id }
      const page = { limit: recordsMax, offset: 0 }
      const [facts, todos, events] = await Promise.all([
        contacts.listContactRecords('fact', key, page),
        contacts.listContactRecords('todo', key, { ...page, status: 'pending' }),
        contacts.listContactRecords('event', key, page),
      ])
      return {
        ok: true,
        output: {
          ...(shortView(row) as Record<string, JsonValue>),
          note: row.note === null ? null : cut(row.note),
          profile: cut(JSON.stringify(row.profile)),
          facts: facts.rows.map((fact) => ({ id: fact.id, content: cut(fact.content) })),
          openTodos: todos.rows.map((todo) => ({ id: todo.id, content: cut(todo.content), dueAt: timeOf(todo.dueAt) })),
          events: events.rows.map((event) => ({
            id: event.id,
            title: cut(event.title),
            description: event.description === null ? null : cut(event.description),
            date: timeOf(event.eventDate ?? event.createdAt),
            conversationId: shownConversationIdOrNull(event.sourceConversationId),
          })),
          totals: { facts: facts.total, openTodos: todos.total, events: events.total },
        },
        summary: `The contact ${quoted(row.name, 60)} was read.`,
      }
    },
  }
}

function addContactFact(contacts: Contacts): Tool {
  return {
    name: 'add_contact_fact',
    description: 'Stores a lasting fact about a contact of the user, such as a preference or a change of job.',
    // The id of the fact comes from the idempotency key, so a call that is repeated after a crash adds no second fact.
    effect: 'idempotent',
    confirm: 'always',
    audience: 'chats',
    inputSchema: {
      type: 'object',
      properties: {
        contactId,
        contactName: {
          type: 'string',
          minLength: 1,
          maxLength: 200,
          description: 'The name of this contact, exactly as it is stored. The user reads it before confirming.',
        },
        content: { type: 'string', minLength: 1, maxLength: factCharsMax, description: 'The fact, as one sentence.' },
      },
      required: ['contactId', 'contactName', 'content'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    outputCharsMax: 1_000,
    describe: (input) =>
      `Add a fact about ${quoted(textField(input, 'contactName'), 60)} (contact ${excerpt(textField(input, 'contactId'), 60)}): ${quoted(textField(input, 'content'))}`,
    async run(input, { owner, idempotencyKey, conversationId, now }) {
      const id = textField(input, 'contactId')
      const row = await contacts.readContact(owner, id)
      if (row === undefined) return noContact(id)
      // The person agreed to a name, so the fact is stored only if it is the name of this contact.
      if (textField(input, 'contactName').trim() !== row.name) {
        return failed(`The contact ${id} has another name: ${row.name}. Nothing was stored.`)
      }
      const content = textField(input, 'content').trim()
      if (content === '') return failed('The fact is empty. Nothing was stored.')
      const fact = {
        id: factId(owner, idempotencyKey),
        owner,
        contactId: id,
        content,
        metadata: {},
        sourceConversationId: conversationId,
        sourceMessageIds: [],
        createdAt: now(),
        updatedAt: now(),
      }
      await contacts.addContactRecord('fact', fact)
      return { ok: true, output: { id: fact.id }, summary: `The fact about ${quoted(row.name, 60)} was stored.` }
    },
  }
}

function shortView(row: ContactRow): JsonValue {
  const { id, name, alias, company, position, email, phone, tags } = row
  return { id, name, alias, company, position, email, phone, tags: tags.slice(0, tagsShownMax) }
}

function noContact(id: string): ToolResult {
  return failed(`There is no contact ${JSON.stringify(id)}. Search for it with search_contacts.`)
}

function failed(sentence: string): ToolResult {
  return { ok: false, output: { error: sentence }, summary: sentence }
}

/** Keeps line ends, unlike `excerpt`. */
function cut(text: string): string {
  return text.length <= textCharsMax ? text : `${text.slice(0, textCharsMax - 1).toWellFormed()}…`
}

function timeOf(at: number | null): string | null {
  return at === null ? null : isoTime(at)
}

/** The owner is part of the id, so that two users with the same key never share a fact. */
function factId(owner: string, idempotencyKey: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([owner, idempotencyKey]))
    .digest('hex')
  return `fact_${digest.slice(0, 32)}`
}
