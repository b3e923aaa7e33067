import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConversationRow } from '../stores/conversation-store.ts'
import { lookUpConversation, ownConversation } from './conversation-names.ts'

/** Conversations by id, and names as `owner/name` → id. */
function storeOf(conversations: Record<string, string>, names: Record<string, string>) {
  const row = (id: string | undefined): ConversationRow | undefined =>
    id === undefined || !Object.hasOwn(conversations, id)
      ? undefined
      : {
          id,
          owner: conversations[id] as string,
          title: null,
          summary: null,
          contactId: null,
          createdAt: 0,
          updatedAt: 0,
          lastMessageAt: null,
          archivedAt: null,
        }
  return {
    readConversation: async (id: string) => row(id),
    findConversationByName: async (owner: string, name: string) => row(names[`${owner}/${name}`]),
  }
}

test('an id that an older version took from a client belongs to its owner, and other users can still take the same id', async () => {
  const store = storeOf({ conv_123: 'ann', minted: 'ann' }, { 'ann/conv_123': 'conv_123' })

  assert.equal(await lookUpConversation(store, 'bob', 'conv_123'), 'free')
  assert.equal(await lookUpConversation(store, 'bob', 'minted'), 'foreign')
  assert.equal(((await lookUpConversation(store, 'ann', 'conv_123')) as ConversationRow).id, 'conv_123')
  assert.equal(((await lookUpConversation(store, 'ann', 'minted')) as ConversationRow).id, 'minted')
})

test('a name leads to its conversation, whatever id that has', async () => {
  const store = storeOf({ k: 'ann', x: 'bob' }, { 'ann/x': 'k' })

  assert.equal(((await lookUpConversation(store, 'ann', 'x')) as ConversationRow).id, 'k')
})

test('another user’s conversation and one that does not exist are refused with the same sentence', async () => {
  const store = storeOf({ theirs: 'ann' }, {})

  for (const name of ['theirs', 'nobodys'])
    await assert.rejects(ownConversation(store, 'bob', name), {
      code: 'conversation_not_found',
      message: `There is no conversation ${JSON.stringify(name)}.`,
    })
})
