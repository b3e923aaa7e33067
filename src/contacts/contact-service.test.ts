// Which contacts a caller can reach, and deleting a contact while conversations are linked to
// it; on the real store.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openRig, type Rig, silence } from '../../test/support/run-rig.ts'
import { ConversationService } from '../conversations/conversation-service.ts'
import type { ConversationRow } from '../stores/conversation-store.ts'
import { ContactService } from './contact-service.ts'

async function setUp(
  context: TestContext,
  afterDelete: (row: { id: string }, rig: Rig) => Promise<void> = async () => {},
) {
  const rig = await openRig({ answer: (_request, signal) => silence(signal) })
  context.after(() => rig.close())
  const { store, clock, dependencies, service } = rig
  const conversations = new ConversationService({ store, runs: service, clock, ids: dependencies.ids })
  const contacts = new ContactService({
    store,
    conversations: {
      get: (owner, name) => conversations.get(owner, name),
      async delete(row) {
        await conversations.delete(row)
        await afterDelete(row, rig)
      },
    },
    clock,
    ids: dependencies.ids,
  })
  return { rig, store, conversations, contacts }
}

const page = { limit: 10, offset: 0 }

describe('a contact', () => {
  it('is found by its owner, and does not exist for others, nor do its records', async (context) => {
    const { contacts } = await setUp(context)
    await contacts.create('ann', { id: 'c', name: 'Wei' })
    const source = { sourceConversationId: null, sourceMessageIds: [] }
    const fact = await contacts.addRecord('fact', 'ann', 'c', { content: 'x', metadata: {}, ...source })
    const key = { owner: 'bob', contactId: 'c', id: fact.id }

    for (const attempt of [
      () => contacts.get('bob', 'c'),
      () => contacts.update('bob', 'c', { name: 'x' }),
      () => contacts.delete('bob', 'c'),
      () => contacts.context('bob', 'c', 1),
      () => contacts.conversations('bob', 'c', page),
      () => contacts.listRecords('fact', 'bob', 'c', page),
      () => contacts.addRecord('fact', 'bob', 'c', { content: 'x', metadata: {}, ...source }),
      () => contacts.updateRecord('fact', key, { content: 'y' }),
      () => contacts.deleteRecord('fact', key),
    ]) {
      await assert.rejects(attempt, { code: 'contact_not_found' })
    }
    assert.equal((await contacts.list('bob', page)).total, 0)
    assert.equal((await contacts.context('ann', 'c', 1)).facts[0]?.content, 'x')
  })

  it('is deleted with all its conversations, also one that is linked while they are deleted', async (context) => {
    let linked = 0
    const { contacts, conversations, store } = await setUp(context, async (_row, rig) => {
      if (linked > 0) return
      linked += 1
      const late = { id: 'late', owner: 'ann', title: null, contactId: 'c', createdAt: 1, updatedAt: 1 }
      await rig.store.createConversation(late)
    })
    await contacts.create('ann', { id: 'c', name: 'Wei' })
    const made: ConversationRow[] = []
    // More than are read at once.
    for (let at = 0; at < 103; at++) made.push(await conversations.create('ann', null, 'c'))
    const other = await conversations.create('ann', null)

    await contacts.delete('ann', 'c')

    assert.equal(linked, 1)
    assert.equal(await store.readContact('ann', 'c'), undefined)
    for (const { id } of [...made, { id: 'late' }]) assert.equal(await store.readConversation(id), undefined)
    assert.ok((await store.readConversation(other.id)) !== undefined)
    await assert.rejects(conversations.create('ann', null, 'c'), { code: 'contact_not_found' })
  })

  it('stays, with what is left of it, if one of its conversations cannot be deleted; the next try succeeds', async (context) => {
    let failing = true
    const { contacts, conversations, store } = await setUp(context, async () => {
      if (failing) throw new Error('the disk is gone')
    })
    await contacts.create('ann', { id: 'c', name: 'Wei' })
    for (let at = 0; at < 3; at++) await conversations.create('ann', null, 'c')

    await assert.rejects(contacts.delete('ann', 'c'), /the disk is gone/)
    assert.equal((await contacts.conversations('ann', 'c', page)).total, 2)
    failing = false
    await contacts.delete('ann', 'c')

    assert.equal(await store.readContact('ann', 'c'), undefined)
  })
})
