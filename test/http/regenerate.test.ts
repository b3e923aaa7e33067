// POST /v1/agent/chat with `regenerate`: the last question is answered again, and the feedback that a message has.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endOf, hangsAfter, type Json, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()

async function messages(user: string, conversationId: string): Promise<Json[]> {
  const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
  return body as unknown as Json[]
}

describe('regenerate', () => {
  test('answers the last question again; the new answer takes the place of the old one', async () => {
    const user = someone()
    await server.provider.script([says('First.'), says('Second.')], user)
    const [start] = await server.chatToEnd(user, `question of ${user}`)
    const conversationId = String(start?.json.data.conversationId)

    const again = await server.chatToEnd(user, { input: undefined, regenerate: true, conversationId })

    assert.equal(again[0]?.json.data.input, `question of ${user}`)
    assert.equal(endOf(again).output, 'Second.')
    assert.deepEqual(
      (await messages(user, conversationId)).map(({ role, content }) => [role, content]),
      [
        ['user', `question of ${user}`],
        ['assistant', 'Second.'],
      ],
    )
  })

  test('without a conversation, in one that does not exist, or while a run is open, it is refused', async () => {
    const user = someone()
    const ask = (body: Json) => server.call('POST', '/v1/agent/chat', { user, body: { regenerate: true, ...body } })
    const nameless = await ask({})
    assert.deepEqual([nameless.status, nameless.body.code], [400, 'nothing_to_regenerate'])
    assert.match(nameless.body.message, /conversationId/)
    const unknown = await ask({ conversationId: 'nowhere' })
    assert.deepEqual([unknown.status, unknown.body.code], [404, 'conversation_not_found'])

    await server.provider.script([hangsAfter('Still')], user)
    const stream = await server.chat(user, `open ${user}`)
    await stream.waitFor((frame) => frame.json.event === 'agent.delta')
    const conversationId = String(stream.frames[0]?.json.data.conversationId)
    const busy = await ask({ conversationId, whenBusy: 'queue' })
    assert.deepEqual([busy.status, busy.body.code], [409, 'conversation_busy'])
    assert.doesNotMatch(busy.body.message, /queue/, 'the advice would not help: a regeneration is never queued')
    await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user, body: {} })
    await stream.ended()
  })
})

test('messages have the feedback of their owner', async () => {
  const user = someone()
  await server.provider.script([says('An answer.')], user)
  const [start] = await server.chatToEnd(user, `judge ${user}`)
  const conversationId = String(start?.json.data.conversationId)
  const [question, answer] = await messages(user, conversationId)
  assert.deepEqual([question?.feedback, answer?.feedback], [undefined, undefined])

  await server.call('POST', '/api/like', { body: { client_id: user, message_id: answer?.id } })
  await server.call('POST', '/api/text_feedback', {
    body: { client_id: user, message_id: answer?.id, feedback_msg: 'Good' },
  })

  const [, judged] = await messages(user, conversationId)
  assert.deepEqual(judged?.feedback, { reaction: 'like', comments: 1 })
})
