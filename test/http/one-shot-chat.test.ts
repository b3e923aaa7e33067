// The agent chat_conversation through POST /v1/agent/run: one turn of a chat, which is stored and
// never cached.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resultOf, sharedOneShotServer } from '../support/one-shot.ts'
import { openStream } from '../support/sse.ts'
import { calls, type Json, messagesOf, says, someone } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('chat_conversation', () => {
  test('is one turn of a chat, stored in its conversation, and never cached', async () => {
    const user = someone()
    await server.provider.script([says('Hello.'), says('Hello again.')], user)
    const body = { agentId: 'chat_conversation', userId: user, conversationId: 'talk', input: { prompt: `hi ${user}` } }
    const one = resultOf(await server.run(body))
    const two = resultOf(
      await server.run({ ...body, input: { messages: [{ role: 'user', content: `again ${user}` }] } }),
    )

    assert.deepEqual([one.cached, one.snapshotId, one.operation], [false, null, null])
    assert.equal(one.data.content, 'Hello.')
    const { id, createdAt, createdAtMs, ...message } = one.data.message
    assert.deepEqual(message, { role: 'assistant', content: 'Hello.' })
    assert.deepEqual([typeof id, Date.parse(createdAt)], ['string', createdAtMs])
    assert.equal(two.data.content, 'Hello again.')
    const { body: stored } = await server.call('GET', '/v1/agent/messages?conversationId=talk', { user })
    assert.deepEqual(
      (stored as unknown as Json[]).map(({ content }) => content as string),
      [`hi ${user}`, 'Hello.', `again ${user}`, 'Hello again.'],
    )
    assert.equal((stored as unknown as Json[])[1]?.id, id)
    const [, second] = await server.asked(user)
    assert.ok(
      messagesOf(second).some(({ content }) => content === 'Hello.'),
      'the second turn knows the first',
    )
  })

  test('has the id of its message also if the answer has no text', async () => {
    const user = someone()
    await server.provider.script([says()], user)
    const body = {
      agentId: 'chat_conversation',
      userId: user,
      conversationId: 'quiet',
      input: { prompt: `hi ${user}` },
    }
    const { data } = resultOf(await server.run(body))

    const { body: stored } = await server.call('GET', '/v1/agent/messages?conversationId=quiet', { user })
    assert.deepEqual([data.content, data.message.content], ['', ''])
    assert.equal(data.message.id, (stored as unknown as Json[])[1]?.id)
  })

  test('refuses calls that need consent, and goes on', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: user }]), says('I may not.')], user)
    const input = { message: `note ${user}` }
    const result = resultOf(await server.run({ agentId: 'chat_conversation', userId: user, input }))

    assert.equal(result.data.content, 'I may not.')
    const [, after] = await server.asked(user)
    assert.match(messagesOf(after).findLast(({ role }) => role === 'tool')?.content, /consent/)
  })

  test('streams like a chat if a stream is asked for', async () => {
    const user = someone()
    await server.provider.script([says('Hello.')], user)
    const live = await openStream(`${server.baseUrl}/v1/agent/run`, {
      method: 'POST',
      body: { agentId: 'chat_conversation', userId: user, input: { prompt: `hi ${user}` } },
      headers: { accept: 'text/event-stream' },
    })
    await live.ended()
    assert.equal(live.frames.at(-1)?.json.data.output, 'Hello.')
  })
})
