// A store with contacts, for tests: opened in a folder of its own, and filled from a
// dataset. The time of a conversation without messages is that of its creation.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { ContactDataset } from '../../scripts/contact-dataset.ts'
import type { Store } from '../../src/stores/store.ts'
import { manualClock } from './manual-clock.ts'
import { openTestStore } from './test-database.ts'

/** Closed and removed after the tests of the file. */
export async function openContactStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-contacts-'))
  const { store } = await openTestStore(join(folder, 'store.db'), { time: manualClock() })
  after(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return store
}

export async function fillStore(store: Store, dataset: ContactDataset): Promise<void> {
  await Promise.all(dataset.contacts.map((row) => store.createContact(row, 100_000)))
  await Promise.all([
    ...dataset.facts.map((row) => store.addContactRecord('fact', row)),
    ...dataset.todos.map((row) => store.addContactRecord('todo', row)),
    ...dataset.events.map((row) => store.addContactRecord('event', row)),
    ...dataset.conversations.map(({ at, ...row }) =>
      store.createConversation({ ...row, createdAt: at, updatedAt: at }),
    ),
  ])
}
