// Names that clients choose for conversations count per user, in every API family; ids that the server
// minted are global. A client always sees the name that it chose.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  calls,
  endOf,
  type Json,
  messagesOf,
  runIdOf,
  someone,
  toolState,
  sharedTestServer,
} from '../support/test-server.ts'

const server = sharedTestServer()

const get = async (user: string, path: string) => (await server.call('GET', path, { user })).body as unknown as Json[]
const contents = async (user: string, query: string) =>
  (await get(user, `/v1/agent/messages?${query}`)).map(({ content }) => content)

describe('a name that the client chose', () => {
  test('is one conversation for each user, and neither can find out that the other’s exists', async () => {
    const [ann, bob] = [someone(), someone()]
    const conversationId = 'conv_123'
    await server.chatToEnd(ann, { input: `secret of ${ann}`, conversationId })
    const path = `/v1/conversations/${conversationId}`

    const before = await server.call('GET', path, { user: bob })
    const frames = await server.chatToEnd(bob, { input: `hello from ${bob}`, conversationId })
    const [asked] = await server.asked(bob)

    assert.deepEqual([before.status, before.body.code], [404, 'conversation_not_found'])
    assert.equal(frames[0]?.json.data.conversationId, conversationId)
    assert.equal(
      messagesOf(asked).filter(({ role }) => role !== 'system').length,
      1,
      'the model is told nothing of the other conversation',
    )
    const rows = async (user: string) => (await get(user, `${path}/messages`)).map(({ content }) => content)
    assert.equal((await rows(ann))[0], `secret of ${ann}`)
    assert.equal((await rows(bob))[0], `hello from ${bob}`)
    const [hers, his] = [(await get(ann, path)) as Json, (await get(bob, path)) as Json]
    assert.equal(his.title, `hello from ${bob}`)
    assert.notEqual(his.createdAtMs, undefined)
    assert.ok(his.createdAtMs >= hers.createdAtMs)
  })

  test('is what every list and every filter says', async () => {
    const [user, stranger] = [someone(), someone()]
    const conversationId = 'plans/2026 ~ 计划'
    const stream = await server.chat(user, { input: 'go', conversationId })
    await stream.ended()
    await server.chatToEnd(stranger, { input: 'go', conversationId })
    const runId = runIdOf(stream)
    const query = `conversationId=${encodeURIComponent(conversationId)}`

    const runs = await get(user, `/v1/agent/runs?${query}`)
    const timeline = (await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })).body
    const messages = await get(user, `/v1/agent/messages?${query}`)

    assert.equal(decodeURIComponent(String(stream.headers['x-conversation-id'])), conversationId)
    assert.deepEqual(
      runs.map((run) => [run.runId, run.conversationId]),
      [[runId, conversationId]],
    )
    assert.equal(timeline.conversationId, conversationId)
    assert.deepEqual(
      (await get(user, '/v1/conversations')).map(({ id }) => id),
      [conversationId],
    )
    assert.deepEqual([...new Set(messages.map((message) => message.conversationId))], [conversationId])
    assert.deepEqual(await get(user, '/v1/agent/runs?conversationId=never'), [])
    assert.deepEqual(await get(user, '/v1/tool-confirmations?conversationId=never'), [])
  })

  test('can be chosen again after its conversation was deleted, and is then another conversation', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'the first', conversationId: 'again' })
    assert.equal((await server.call('DELETE', '/v1/conversations/again', { user })).status, 204)

    await server.chatToEnd(user, { input: 'the second', conversationId: 'again' })

    assert.equal((await contents(user, 'conversationId=again'))[0], 'the second')
    assert.equal((await get(user, '/v1/conversations')).length, 1)
  })

  test('finds the same conversation in every API family', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: `first ${user}`, conversationId: 'shared' })

    const answer = await server.call('POST', '/api/get_chat_response', {
      body: { client_id: user, message: `second ${user}`, conversation_id: 'shared' },
    })
    const loaded = await server.call('POST', '/api/load_conversation', {
      body: { client_id: user, conversation_id: 'shared' },
    })
    const listed = await server.call('GET', `/api/list_conversations?client_id=${user}`)
    const trace = await server.call('GET', `/api/trace/${answer.body.trace_id}?client_id=${user}`)

    assert.deepEqual([answer.status, answer.body.conversation_id], [200, 'shared'])
    assert.equal(loaded.body.conversation_id, 'shared')
    assert.equal(loaded.body.messages.length, 4)
    assert.deepEqual(
      listed.body.conversations.map((row: Json) => row.conversation_id),
      ['shared'],
    )
    assert.equal(trace.body.trace.conversation_id, 'shared')
    const foreign = await server.call('POST', '/api/load_conversation', {
      body: { client_id: someone(), conversation_id: 'shared' },
    })
    assert.equal(foreign.status, 404)
  })

  test('is shown with a confirmation, which can be listed by it', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'x' }])], user)
    const stream = await server.chat(user, { input: user, conversationId: 'notes' })
    await stream.waitFor(toolState('awaiting_input'))

    const rows = await get(user, '/v1/tool-confirmations?conversationId=notes')
    assert.deepEqual(
      rows.map(({ conversationId, runId }) => [conversationId, runId]),
      [['notes', runIdOf(stream)]],
    )
    await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
    assert.deepEqual(await get(someone(), '/v1/tool-confirmations?conversationId=notes'), [])
  })
})

describe('conversationId and sessionId are one name space', () => {
  test('either finds what the other stored', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'by session', sessionId: 'a' })
    await server.chatToEnd(user, { input: 'by conversation', conversationId: 'b' })

    assert.equal((await contents(user, 'conversationId=a'))[0], 'by session')
    assert.equal((await contents(user, 'sessionId=b'))[0], 'by conversation')
    const frames = await server.chatToEnd(user, { input: 'goes on', conversationId: 'a' })
    assert.equal(frames[0]?.json.data.conversationId, 'a')
    assert.equal((await contents(user, 'sessionId=a')).length, 4)
  })

  test('with both, conversationId wins and sessionId becomes a second name', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'both', conversationId: 'c', sessionId: 's' })

    assert.equal((await contents(user, 'sessionId=s'))[0], 'both')
    const frames = await server.chatToEnd(user, { input: 'by the second name', sessionId: 's' })
    assert.equal(frames[0]?.json.data.conversationId, 'c')
    assert.equal((await contents(user, 'conversationId=c')).length, 4)
  })

  test('a sessionId that means another conversation keeps that meaning', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'of the session', sessionId: 's' })
    const minted = (await server.call('POST', '/v1/conversations', { user })).body.id as string

    await server.chatToEnd(user, { input: 'elsewhere', conversationId: 'c', sessionId: 's' })
    await server.chatToEnd(user, { input: 'elsewhere', conversationId: 'd', sessionId: minted })

    assert.equal((await contents(user, 'sessionId=s'))[0], 'of the session')
    assert.equal((await contents(user, 'conversationId=c'))[0], 'elsewhere')
    assert.deepEqual(await contents(user, `conversationId=${minted}`), [])
  })
})

describe('no name', () => {
  test('starts a new conversation each time; messages without a name are those of the newest of them', async () => {
    const user = someone()
    const first = await server.chatToEnd(user, 'one')
    const second = await server.chatToEnd(user, 'two')
    await server.chatToEnd(user, { input: 'named', conversationId: 'n' })
    await server.call('POST', '/v1/conversations', { user })

    assert.notEqual(first[0]?.json.data.conversationId, second[0]?.json.data.conversationId)
    assert.equal((await contents(user, ''))[0], 'two')
    await server.chatToEnd(user, { input: 'goes on', conversationId: first[0]?.json.data.conversationId })
    assert.equal((await contents(user, ''))[0], 'two')
  })

  test('DELETE removes what GET shows, and leaves the rest', async () => {
    const user = someone()
    await server.chatToEnd(user, 'one')
    await server.chatToEnd(user, 'two')
    await server.chatToEnd(user, { input: 'kept', conversationId: 'kept' })
    await server.chatToEnd(user, { input: 'gone', sessionId: 'gone' })
    const remove = async (query: string) =>
      (await server.call('DELETE', `/v1/agent/messages?${query}`, { user })).status

    assert.deepEqual(
      [await remove(''), await remove('conversationId=gone'), await remove('sessionId=never')],
      [204, 204, 204],
    )

    assert.equal((await contents(user, ''))[0], 'one')
    assert.deepEqual(await contents(user, 'sessionId=gone'), [])
    assert.equal((await contents(user, 'conversationId=kept')).length, 2)
    assert.equal(
      (await server.call('DELETE', '/v1/agent/messages?conversationId=kept', { user: someone() })).status,
      204,
    )
    assert.equal((await contents(user, 'conversationId=kept')).length, 2, 'somebody else’s name means nothing')
  })
})

test('an id that the server minted is global in every family: it is 404 to other users', async () => {
  const user = someone()
  const stream = await server.chat(user, 'mine')
  await stream.ended()
  const id = stream.frames[0]?.json.data.conversationId as string

  const chat = await server.chat(someone(), { input: 'x', conversationId: id })
  const bySession = await server.chat(someone(), { input: 'x', sessionId: id })
  await Promise.all([chat.ended(), bySession.ended()])

  assert.deepEqual([chat.status, bySession.status], [404, 404])
  assert.equal((await server.call('GET', `/v1/conversations/${id}`, { user: someone() })).status, 404)
  assert.equal(endOf(stream.frames).status, 'succeeded')
})
