// /v1/conversations beyond the scenarios of the specification: titles, pages of messages, and
// many requests for one conversation at the same time.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  endOf,
  hangsAfter,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  sharedTestServer,
} from '../support/test-server.ts'

const server = sharedTestServer()

const listOf = async (path: string, user: string) => {
  const { status, body } = await server.call('GET', path, { user })
  assert.equal(status, 200)
  return body as unknown as Json[]
}

describe('titles', () => {
  test('the first message titles a conversation; a person may rename it, or take the title away', async () => {
    const user = someone()
    const path = `/v1/conversations/conv-${user}`
    await server.chatToEnd(user, { input: `  Where is\n the tea? ${'x'.repeat(100)}`, conversationId: `conv-${user}` })
    const first = (await server.call('GET', path, { user })).body
    await server.chatToEnd(user, { input: 'and the milk?', conversationId: `conv-${user}` })

    const renamed = await server.call('PATCH', path, { user, body: { title: ' Tea ' } })
    const cleared = await server.call('PATCH', path, { user, body: { title: null } })

    assert.match(first.title, /^Where is the tea\? x+…$/)
    assert.equal([...first.title].length, 60)
    assert.deepEqual([renamed.status, renamed.body.title], [200, 'Tea'])
    assert.deepEqual([cleared.status, cleared.body.title], [200, null])
  })

  test('a title of the wrong type is 400', async () => {
    const user = someone()
    const { id } = (await server.call('POST', '/v1/conversations', { user })).body

    for (const title of [7, ['a'], {}, 'x'.repeat(501)]) {
      assert.equal((await server.call('POST', '/v1/conversations', { user, body: { title } })).status, 400)
      assert.equal((await server.call('PATCH', `/v1/conversations/${id}`, { user, body: { title } })).status, 400)
    }
    assert.equal((await server.call('PATCH', `/v1/conversations/${id}`, { user, body: {} })).status, 400)
    assert.equal((await listOf('/v1/conversations', user)).length, 1)
  })
})

describe('pages', () => {
  test('messages come newest page first, each page ascending, by message and by time', async () => {
    const user = someone()
    const path = `/v1/conversations/conv-${user}/messages`
    for (let turn = 1; turn <= 4; turn++) {
      await server.provider.script([says(`answer ${turn}`)], user)
      await server.chatToEnd(user, { input: `question ${turn} ${user}`, conversationId: `conv-${user}` })
    }
    const all = await listOf(path, user)

    const newest = await listOf(`${path}?limit=3`, user)
    const before = await listOf(`${path}?limit=3&before=${newest[0]?.id}`, user)
    const rest = await listOf(`${path}?limit=3&before=${before[0]?.id}`, user)
    const byTime = await listOf(`${path}?before=${all[4]?.createdAt}`, user)

    assert.equal(all.length, 8)
    assert.deepEqual([...rest, ...before, ...newest], all)
    assert.deepEqual(
      byTime,
      all.filter(({ createdAtMs }) => createdAtMs < all[4]?.createdAtMs),
    )
  })

  test('messages are sent with no-store, and invalid bounds are 400', async () => {
    const user = someone()
    const { id } = (await server.call('POST', '/v1/conversations', { user })).body
    const path = `/v1/conversations/${id}/messages`

    const fine = await server.call('GET', path, { user })

    assert.equal(fine.headers.get('cache-control'), 'no-store')
    assert.deepEqual(fine.body, [])
    for (const query of ['?limit=0', '?limit=201', '?limit=x', '?before=yesterday', '?before=2026-99-99']) {
      const answer = await server.call('GET', path + query, { user })
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], query)
    }
  })

  test('conversations come page by page too, each once', async () => {
    const user = someone()
    for (let index = 0; index < 5; index++) await server.call('POST', '/v1/conversations', { user })
    const all = await listOf('/v1/conversations', user)

    const first = await listOf('/v1/conversations?limit=2', user)
    const second = await listOf(`/v1/conversations?limit=2&before=${first.at(-1)?.id}`, user)
    const third = await listOf(`/v1/conversations?limit=2&before=${second.at(-1)?.id}`, user)

    assert.deepEqual([...first, ...second, ...third], all)
  })
})

describe('at the same time', () => {
  test('ten chats with one new session make one conversation', async () => {
    const user = someone()

    const streams = await Promise.all(
      Array.from({ length: 10 }, (_, index) => server.chat(user, { input: `${index} ${user}`, sessionId: 'new' })),
    )
    await Promise.all(streams.map((stream) => stream.ended()))

    for (const stream of streams) assert.equal(endOf(stream.frames).status, 'succeeded')
    assert.equal((await listOf('/v1/conversations', user)).length, 1)
    assert.equal(streams.filter((stream) => stream.frames.some(named('context.patch'))).length, 1)
    assert.equal((await listOf('/v1/agent/messages?sessionId=new', user)).length, 20)
  })

  test('five users who choose the same new name get a conversation each', async () => {
    const conversationId = `wanted-${someone()}`
    const users = Array.from({ length: 5 }, () => someone())

    const streams = await Promise.all(users.map((user) => server.chat(user, { input: `${user}!`, conversationId })))
    await Promise.all(streams.map((stream) => stream.ended()))

    for (const stream of streams) assert.equal(endOf(stream.frames).status, 'succeeded')
    for (const user of users) {
      const messages = await listOf(`/v1/conversations/${conversationId}/messages`, user)
      assert.deepEqual([messages.length, messages[0]?.content], [2, `${user}!`])
    }
  })

  test('of five chats that do not want to wait one is taken, and the others are 409', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('Hm')], user)
    const body = { input: user, conversationId: `conv-${user}`, whenBusy: 'reject' }

    const streams = await Promise.all(Array.from({ length: 5 }, () => server.chat(user, body)))

    const taken = streams.filter(({ status }) => status === 200)
    assert.equal(taken.length, 1)
    assert.equal(streams.filter(({ status }) => status === 409).length, 4)
    const [stream] = taken
    assert.ok(stream)
    await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  })
})
