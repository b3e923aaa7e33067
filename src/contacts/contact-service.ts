// Contacts and the records about them, for routes, tools and agents. Each method takes the
// owner and only returns that user's data; a contact of another user is reported as not
// found. Clients may choose the ids of contacts, so an id means something only together
// with its owner.

import { AppError } from '../errors/app-error.ts'
import type { ConversationService } from '../conversations/conversation-service.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import {
  type ContactEventRow,
  type ContactFactRow,
  type ContactFields,
  type ContactListPage,
  contactNotFound,
  type ContactRecord,
  type ContactRecordChanges,
  type ContactRecordKind,
  type ContactRecordPage,
  type ContactRecordRows,
  type ContactRow,
  type ContactStore,
  type ContactTodoRow,
} from '../stores/contact-store.ts'
import type { ConversationRow, ConversationStore } from '../stores/conversation-store.ts'
import type { CountedPage } from '../stores/row-page.ts'
import { contactLimits } from './contact-limits.ts'

export type ContactDependencies = {
  store: ContactStore & Pick<ConversationStore, 'listConversationsOfContact'>
  conversations: Pick<ConversationService, 'delete' | 'get'>
  clock: Clock
  ids: Ids
}

/** Fields that are absent are empty. Without an id the server generates one. */
export type NewContact = Partial<Omit<ContactFields, 'name' | 'uid'>> & { name: string; id?: string | undefined }

export type ContactChanges = Partial<Omit<ContactFields, 'uid'>>

/** The fields of a new record. */
export type NewContactRecord<Kind extends ContactRecordKind> = Omit<ContactRecordRows[Kind], keyof ContactRecord> &
  Pick<ContactRecord, 'sourceConversationId' | 'sourceMessageIds'>

export type ContactContext = {
  contact: ContactRow
  /** Latest first. */
  events: ContactEventRow[]
  /** Added last first. */
  facts: ContactFactRow[]
  /** The open ones, in the order of their due time. */
  todos: ContactTodoRow[]
}

/** How many conversations are read at once when a contact is deleted. */
const conversationPage = 100

const recordNames: Record<ContactRecordKind, string> = { fact: 'fact', todo: 'to-do', event: 'event' }

export class ContactService {
  private readonly dependencies: ContactDependencies

  constructor(dependencies: ContactDependencies) {
    this.dependencies = dependencies
  }

  /** Throws `contact_exists` if the owner has a contact with this id. */
  async create(owner: string, { id, ...fields }: NewContact): Promise<ContactRow> {
    const now = this.dependencies.clock.now()
    const row: ContactRow = {
      uid: null,
      alias: null,
      email: null,
      phone: null,
      company: null,
      position: null,
      note: null,
      profile: {},
      tags: [],
      ...fields,
      owner,
      id: id ?? this.dependencies.ids(),
      createdAt: now,
      updatedAt: now,
    }
    await this.dependencies.store.createContact(row, contactLimits.contacts)
    return row
  }

  /** Throws `contact_not_found`. */
  async get(owner: string, id: string): Promise<ContactRow> {
    const row = await this.dependencies.store.readContact(owner, id)
    if (row === undefined) throw contactNotFound(id)
    return row
  }

  /** Changed last first. */
  async list(owner: string, page: ContactListPage): Promise<CountedPage<ContactRow>> {
    return await this.dependencies.store.listContacts(owner, page)
  }

  async update(owner: string, id: string, changes: ContactChanges): Promise<ContactRow> {
    const row = await this.dependencies.store.updateContact(owner, id, changes, this.dependencies.clock.now())
    if (row === undefined) throw contactNotFound(id)
    return row
  }

  /**
   * Deletes the contact with its records and its conversations, after cancelling their open runs. If it fails in the middle
   * (`conversation_busy`, a crash), the contact is still there with what is left of it, and the call can be repeated.
   */
  async delete(owner: string, id: string): Promise<void> {
    const { store, conversations } = this.dependencies
    await this.get(owner, id)
    for (;;) {
      const { rows } = await store.listConversationsOfContact(owner, id, { limit: conversationPage, offset: 0 })
      for (const row of rows) await conversations.delete(row)
      // The store refuses while conversations are linked: there were more, or one was linked in the meantime.
      if ((await store.deleteContact(owner, id)) !== 'has_conversations') return
    }
  }

  /** The newest records of each kind, at most `limit` of each. */
  async context(owner: string, id: string, limit: number): Promise<ContactContext> {
    const contact = await this.get(owner, id)
    const { store } = this.dependencies
    const key = { owner, contactId: id }
    const page = { limit, offset: 0 }
    const [events, facts, todos] = await Promise.all([
      store.listContactRecords('event', key, page),
      store.listContactRecords('fact', key, page),
      store.listContactRecords('todo', key, { ...page, status: 'pending' }),
    ])
    return { contact, events: events.rows, facts: facts.rows, todos: todos.rows }
  }

  /** The conversations that are linked to the contact, last used first. */
  async conversations(
    owner: string,
    id: string,
    page: { limit: number; offset: number },
  ): Promise<CountedPage<ConversationRow>> {
    await this.get(owner, id)
    return await this.dependencies.store.listConversationsOfContact(owner, id, page)
  }

  /** `sourceConversationId` is a name or id of a conversation; throws `conversation_not_found` if the owner has none such. */
  async addRecord<Kind extends ContactRecordKind>(
    kind: Kind,
    owner: string,
    contactId: string,
    fields: NewContactRecord<Kind>,
  ): Promise<ContactRecordRows[Kind]> {
    await this.get(owner, contactId)
    const { store, clock, ids } = this.dependencies
    const now = clock.now()
    const sourceConversationId = await this.sourceOf(owner, fields.sourceConversationId)
    const row = {
      ...fields,
      sourceConversationId,
      id: ids(),
      owner,
      contactId,
      createdAt: now,
      updatedAt: now,
    } as unknown as ContactRecordRows[Kind]
    await store.addContactRecord(kind, row)
    return row
  }

  async listRecords<Kind extends ContactRecordKind>(
    kind: Kind,
    owner: string,
    contactId: string,
    page: ContactRecordPage,
  ): Promise<CountedPage<ContactRecordRows[Kind]>> {
    await this.get(owner, contactId)
    return await this.dependencies.store.listContactRecords(kind, { owner, contactId }, page)
  }

  /** Throws `contact_record_not_found` if the contact has no such record. */
  async updateRecord<Kind extends ContactRecordKind>(
    kind: Kind,
    key: { owner: string; contactId: string; id: string },
    changes: ContactRecordChanges<Kind>,
  ): Promise<ContactRecordRows[Kind]> {
    await this.get(key.owner, key.contactId)
    const { store, clock } = this.dependencies
    const { sourceConversationId: source } = changes
    const resolved =
      source === undefined ? changes : { ...changes, sourceConversationId: await this.sourceOf(key.owner, source) }
    const row = await store.updateContactRecord(kind, key, resolved, clock.now())
    if (row === undefined) throw recordNotFound(kind, key.id)
    return row
  }

  async deleteRecord(kind: ContactRecordKind, key: { owner: string; contactId: string; id: string }): Promise<void> {
    await this.get(key.owner, key.contactId)
    if (!(await this.dependencies.store.deleteContactRecord(kind, key))) throw recordNotFound(kind, key.id)
  }

  private async sourceOf(owner: string, name: string | null): Promise<string | null> {
    return name === null ? null : (await this.dependencies.conversations.get(owner, name)).id
  }
}

function recordNotFound(kind: ContactRecordKind, id: string): AppError {
  return new AppError('contact_record_not_found', `The contact has no ${recordNames[kind]} ${JSON.stringify(id)}.`)
}
