// Which conversation a turn belongs to, for each kind of name that a request can carry.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConversationRow } from '../stores/conversation-store.ts'
import type { StartRequest } from './start-request.ts'
import { findRunConversation, namesOf } from './run-conversation.ts'

const names: Record<string, string> = { 'ada/known': 'k1', 'ada/other': 'k2' }
const owners: Record<string, string> = { k1: 'ada', k2: 'ada', mine: 'ada', theirs: 'eve' }
const row = (id: string | undefined): ConversationRow | undefined => {
  const owner = id === undefined ? undefined : owners[id]
  return id === undefined || owner === undefined
    ? undefined
    : {
        id,
        owner,
        title: null,
        summary: null,
        contactId: null,
        createdAt: 0,
        updatedAt: 0,
        lastMessageAt: null,
        archivedAt: null,
      }
}
const place = (names_: Partial<StartRequest>) =>
  findRunConversation(
    { owner: 'ada', family: 'agent', input: 'x', earlier: [], whenBusy: 'queue', idempotency: null, ...names_ },
    {
      store: {
        readConversation: async (id) => row(id),
        findConversationByName: async (owner, name) => row(names[`${owner}/${name}`]),
      },
      ids: () => 'fresh',
    },
  )

test('without a name it is a new conversation, and the client gets its id', async () => {
  const found = await place({})
  assert.deepEqual(found, { id: 'fresh', exists: false, announce: true, name: null, unnamed: true })
  assert.deepEqual(namesOf(found), { name: null, unnamed: true })
})

test('a name that is free becomes the name of a new conversation; the client gets its id if it sent only a sessionId', async () => {
  assert.deepEqual(await place({ conversationId: 'new' }), {
    id: '~fresh~new',
    exists: false,
    announce: false,
    name: 'new',
  })
  assert.deepEqual(await place({ sessionId: 'new' }), { id: '~fresh~new', exists: false, announce: true, name: 'new' })
})

test('a name or an id of the owner is its conversation', async () => {
  for (const [request, id] of [
    [{ conversationId: 'known' }, 'k1'],
    [{ sessionId: 'known' }, 'k1'],
    [{ conversationId: 'mine' }, 'mine'],
    [{ conversationId: 'known', sessionId: 'other' }, 'k1'],
    [{ conversationId: 'known', sessionId: 'known' }, 'k1'],
  ] as const)
    assert.deepEqual(await place(request), { id, exists: true, announce: false, name: null })
})

test('a sessionId beside a conversationId is a second name, if it is free', async () => {
  const added = await place({ conversationId: 'known', sessionId: 'second' })
  assert.deepEqual(added, { id: 'k1', exists: true, announce: false, name: null, alias: 'second' })
  assert.deepEqual(namesOf(added), { name: null, alias: 'second' })
  assert.equal((await place({ conversationId: 'new', sessionId: 'second' })).alias, 'second')
  for (const sessionId of ['other', 'mine', 'theirs', 'new'])
    assert.equal('alias' in (await place({ conversationId: 'new', sessionId })), false, sessionId)
})

test('an id that was minted for another user is not found; an id that the family minted is taken as it is', async () => {
  await assert.rejects(place({ conversationId: 'theirs' }), { code: 'conversation_not_found', message: /"theirs"/ })
  assert.deepEqual(await place({ newConversationId: 'agt-1' }), {
    id: 'agt-1',
    exists: false,
    announce: false,
    name: null,
  })
})
