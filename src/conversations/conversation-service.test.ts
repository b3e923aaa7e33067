// Which conversations a caller can reach, and deleting one while a run is under way in it; on
// the real scheduler and store.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openRig, type Rig, type RigOptions, silence } from '../../test/support/run-rig.ts'
import { ConversationService } from './conversation-service.ts'

const caller = (userId: string, named = true) => ({ userId, loggedIn: false, named })

async function rigged(
  context: TestContext,
  options: RigOptions = {},
  beforeDelete: (rig: Rig, id: string) => Promise<void> = () => Promise.resolve(),
): Promise<{ rig: Rig; conversations: ConversationService }> {
  const rig = await openRig(options)
  context.after(() => rig.close())
  const { store, clock, dependencies, service } = rig
  const conversations = new ConversationService({
    store,
    runs: service,
    clock,
    ids: dependencies.ids,
    beforeDelete: (id) => beforeDelete(rig, id),
  })
  return { rig, conversations }
}

describe('a conversation', () => {
  it('is found by its owner, and does not exist for others', async (context) => {
    const { conversations } = await rigged(context)
    const { id } = await conversations.create('ann', 'Plans')

    assert.equal((await conversations.get('ann', id)).title, 'Plans')
    await assert.rejects(conversations.get('bob', id), { code: 'conversation_not_found' })
    await assert.rejects(conversations.update('bob', id, { title: 'Mine' }), { code: 'conversation_not_found' })
    await assert.rejects(conversations.list('bob', { limit: 1, before: id }), { code: 'conversation_not_found' })
    assert.equal(await conversations.find('bob', id), undefined)
    const filters = [conversations.idFilter('bob', id), conversations.idFilter('ann', id)]
    assert.deepEqual(await Promise.all([...filters, conversations.idFilter('bob', undefined)]), [null, id, undefined])
  })

  it('is deleted after what is under way in it was cancelled and what lies beside it was removed', async (context) => {
    const seen: unknown[] = []
    const { rig, conversations } = await rigged(
      context,
      { answer: (_request, signal) => silence(signal) },
      async ({ store }, id) => {
        seen.push((await store.readConversation(id))?.id, (await store.openRuns(id)).length)
      },
    )
    const { run } = await rig.start({ conversationId: 'c' })
    await rig.until(run.id, ({ status }) => status === 'running')
    const row = await conversations.get('ada', 'c')

    await conversations.delete(row)

    assert.deepEqual(seen, [row.id, 0])
    assert.equal(await rig.store.readConversation(row.id), undefined)
    assert.equal(await rig.store.readRun(run.id), undefined)
  })
})

describe('a message', () => {
  it('is its owner’s, and is found by a caller who names no user', async (context) => {
    const { rig, conversations } = await rigged(context)
    const { run } = await rig.start({ conversationId: 'c' })
    await rig.until(run.id, ({ endedAt }) => endedAt !== null)
    const row = await conversations.get('ada', 'c')
    const [asked, answer] = (await conversations.messages(row, { limit: 10, before: undefined })).rows
    const id = answer?.id ?? ''

    assert.equal((await conversations.message(caller('ada'), id)).owner, 'ada')
    assert.equal((await conversations.message(caller('anonymous', false), id)).content, 'Hello.')
    for (const other of ['bob', 'anonymous'])
      await assert.rejects(conversations.message(caller(other), id), { code: 'message_not_found' })
    await assert.rejects(conversations.message(caller('ada'), 'nothing'), { code: 'message_not_found' })
    assert.equal(await conversations.hasMessage(row, id), true)
    assert.equal(await conversations.hasMessage({ id: 'another' }, id), false)
    assert.equal((await conversations.messages(row, { limit: 10, before: { id } })).rows[0]?.id, asked?.id)
  })
})
