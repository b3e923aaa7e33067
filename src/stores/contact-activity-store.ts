// What signals about contacts are computed from: when there was contact, what is planned and
// what is still to do. Read for many contacts at once, without the long texts.

import type { ContactEventRow, ContactTodoRow } from './contact-store.ts'

export type ContactActivity = {
  contactId: string
  /** The newest ones; `at` is the time of the last message, or of the creation if there is none. */
  conversations: { id: string; title: string | null; at: number }[]
  /** Latest date first, so future ones come first. */
  events: Pick<ContactEventRow, 'id' | 'title' | 'eventDate' | 'createdAt'>[]
  /** The pending ones, in the order of their due time. `content` is cut to `activityTextChars`. */
  todos: Pick<ContactTodoRow, 'id' | 'content' | 'status' | 'dueAt'>[]
}

/** How many rows of each kind are read for one contact. A contact with more has its older interactions left out. */
export const activityRowsMax = 500
export const activityTextChars = 200

export interface ContactActivityStore {
  /** One entry for each id, in the order of `contactIds`; a contact that the owner does not have has empty lists. */
  contactActivity(owner: string, contactIds: readonly string[]): Promise<ContactActivity[]>
}
