// Contract: the activity of contacts, from which signals are computed.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { activityTextChars, type ContactActivityStore } from '../../src/stores/contact-activity-store.ts'
import type { ContactEventRow, ContactStore, ContactTodoRow } from '../../src/stores/contact-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { OpenStore } from './open-store.ts'
import { contact, record } from './store-contract-contacts.ts'
import { owner, start, withStore } from './store-fixtures.ts'

const event = (id: string, contactId: string, eventDate: number | null): ContactEventRow => ({
  ...record(id, contactId),
  title: `event ${id}`,
  description: 'long',
  details: { a: 1 },
  eventDate,
})
const todo = (id: string, contactId: string, changes: Partial<ContactTodoRow>): ContactTodoRow => ({
  ...record(id, contactId),
  content: `to-do ${id}`,
  status: 'pending',
  dueAt: null,
  ...changes,
})

export function contactActivityContract(
  open: OpenStore<ContactActivityStore & ContactStore & ConversationStore>,
): void {
  const opened = withStore(open)

  describe('the activity of contacts', () => {
    test(
      'is read for several contacts at once, in the order asked for, and only for their owner',
      opened(async ({ store }) => {
        for (const id of ['a', 'b']) await store.createContact(contact(id), 10)
        await store.createConversation({
          id: 'talk',
          owner,
          title: 'Lunch',
          contactId: 'a',
          createdAt: start,
          updatedAt: start,
        })
        await store.addContactRecord('event', event('past', 'a', start - 1000))
        await store.addContactRecord('event', event('undated', 'a', null))
        await store.addContactRecord('event', event('future', 'a', start + 1000))
        await store.addContactRecord('todo', todo('any time', 'b', {}))
        await store.addContactRecord('todo', todo('due', 'b', { dueAt: start, content: 'x'.repeat(5000) }))
        await store.addContactRecord('todo', todo('done', 'b', { status: 'completed' }))

        const found = await store.contactActivity(owner, ['b', 'missing', 'a'])

        assert.deepEqual(found, [
          {
            contactId: 'b',
            conversations: [],
            events: [],
            todos: [
              { id: 'due', content: 'x'.repeat(activityTextChars), status: 'pending', dueAt: start },
              { id: 'any time', content: 'to-do any time', status: 'pending', dueAt: null },
            ],
          },
          { contactId: 'missing', conversations: [], events: [], todos: [] },
          {
            contactId: 'a',
            conversations: [{ id: 'talk', title: 'Lunch', at: start }],
            events: [
              { id: 'future', title: 'event future', eventDate: start + 1000, createdAt: start },
              { id: 'undated', title: 'event undated', eventDate: null, createdAt: start },
              { id: 'past', title: 'event past', eventDate: start - 1000, createdAt: start },
            ],
            todos: [],
          },
        ])
        const [foreign] = await store.contactActivity('mallory', ['a'])
        assert.deepEqual(foreign, { contactId: 'a', conversations: [], events: [], todos: [] })
      }),
    )
  })
}
