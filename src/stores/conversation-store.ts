// Conversations, and the names that clients chose for them. A conversation usually
// comes into being with its first run (see `AcceptInput.conversation`).

import type { CountedPage, RowPage } from './row-page.ts'

export type ConversationRow = {
  id: string
  owner: string
  title: string | null
  /** A few sentences about the conversation; null until there is a summary. */
  summary: string | null
  /** The contact that the conversation is with or about; one of the owner's. */
  contactId: string | null
  createdAt: number
  updatedAt: number
  /** When the last question or answer was written, not counting answers that broke off; null if there is none. */
  lastMessageAt: number | null
  /** When an archive of the conversation was applied last; null if none was. */
  archivedAt: number | null
}

/** `contactId`: `contact_not_found` if the owner has no such contact; absent means none. */
export type NewConversation = Omit<ConversationRow, 'lastMessageAt' | 'archivedAt' | 'summary' | 'contactId'> & {
  contactId?: string | null
  /** The owner's name for it, bound to it; `accept_stale` if it names another conversation of the owner. */
  name?: string
}

export type ConversationChanges = Partial<Pick<ConversationRow, 'title' | 'summary' | 'contactId'>>

export interface ConversationStore {
  createConversation(row: NewConversation): Promise<void>
  readConversation(id: string): Promise<ConversationRow | undefined>
  /** By a name that this owner's clients chose; see `AcceptInput.conversation`. */
  findConversationByName(owner: string, name: string): Promise<ConversationRow | undefined>
  /** The conversation that was created last as `unnamed`. */
  newestUnnamedConversation(owner: string): Promise<ConversationRow | undefined>
  /**
   * Last used first: in the order of the writes, not of `updatedAt`, because the clock may be set. `search`: only those whose title
   * or summary contains this text, in any case of ASCII letters.
   */
  listConversations(
    owner: string,
    page: { limit: number; before?: { id: string }; search?: string },
  ): Promise<RowPage<ConversationRow>>
  /** The conversation with the newest message first. One without messages is placed by its `createdAt`. */
  listConversationsByLastMessage(
    owner: string,
    page: { limit: number; before?: { id: string } },
  ): Promise<RowPage<ConversationRow>>
  /** The conversations that are linked to a contact, last used first. */
  listConversationsOfContact(
    owner: string,
    contactId: string,
    page: { limit: number; offset: number },
  ): Promise<CountedPage<ConversationRow>>
  /** Of the conversations whose id begins with `prefix`: how many there are, and how many of them have an unfinished run. */
  countConversations(prefix: string): Promise<{ total: number; active: number }>
  /** Undefined if there is no such conversation; `contact_not_found` if its owner has no contact `contactId`. */
  updateConversation(id: string, changes: ConversationChanges, at: number): Promise<ConversationRow | undefined>
  /**
   * With its messages, their feedback, its comparisons, runs, events, interactions and blobs. Refused with `conversation_busy`
   * while one of its runs has not ended.
   */
  deleteConversation(id: string): Promise<boolean>
}
