// The comparison as the chat's own client makes it: two streams at once with one
// question and one time of sending, then /api/ab/create. The second stream is another
// answer to the first question, whatever the order in which the two arrive.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ask, type ChunkStream, get, post, textOf } from '../support/chat-api.ts'
import { type AbTestServer, calm, startAbTestServer, wild } from '../support/comparisons.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'

let server: AbTestServer
before(async () => {
  server = await startAbTestServer()
})
after(async () => {
  await server.close()
})

const down = [{ status: 500, body: { error: { message: 'down' } } }]
let clock = Date.now()
/** No two questions of this file were sent at the same time. */
const nextTime = () => (clock += 1)

type Arm = { config_name: string } & Json

/** The body of the chat's own client. */
function bodyOf(question: string, sentAt: number, conversationId: string | null, arm: Json): Json {
  return {
    last_message: [['User', question]],
    conversation_id: conversationId,
    is_refresh: false,
    client_sent_msg_ts: sentAt,
    client_timeout: 600_000,
    ...arm,
  }
}

async function askBoth(
  client: string,
  question: string,
  { conversationId = null, sentAt = nextTime() }: { conversationId?: string | null; sentAt?: number } = {},
  arms: [Arm, Arm] = [{ config_name: calm.name }, { config_name: wild.name }],
): Promise<[ChunkStream, ChunkStream]> {
  const [one, two] = await Promise.all(
    arms.map((arm) => ask(server, client, bodyOf(question, sentAt, conversationId, arm))),
  )
  return [one as ChunkStream, two as ChunkStream]
}

async function messagesOf(client: string, conversationId: string): Promise<Json[]> {
  return (await post(server, 'load_conversation', client, { conversation_id: conversationId })).body.messages
}

const contents = async (client: string, conversationId: string) =>
  (await messagesOf(client, conversationId)).map((message) => message.content)

async function create(client: string, conversationId: string, [a, b]: [ChunkStream, ChunkStream]): Promise<Json> {
  const [done, other] = [(await a.toEnd()).at(-1), (await b.toEnd()).at(-1)]
  const { trace } = (await get(server, `trace/${a.traceId}`, client)).body
  const created = await post(server, 'ab/create', client, {
    conversation_id: conversationId,
    user_prompt_mid: trace.user_message_id,
    response_a_mid: done?.message_id,
    response_b_mid: other?.message_id,
    config_a_id: calm.name,
    config_b_id: wild.name,
    is_config_a_first: true,
  })
  assert.equal(created.status, 200, created.text)
  return created.body
}

/** The messages that the model got, without the instructions. */
async function toldOf(marker: string): Promise<unknown[][]> {
  return (await server.asked(marker)).map(({ body }) =>
    (body.messages ?? []).filter(({ role }) => role !== 'system').map(({ content }) => content),
  )
}

describe('two streams with one question and one time of sending', () => {
  it('answer one question of one conversation, neither sees the other, and the vote decides the history', async () => {
    const client = someone()
    const first = await ask(server, client, `Before. ${client}`)
    await first.toEnd()
    const { conversationId } = first
    const question = `Which? ${someone('mark')}`
    await server.script(question, says('From calm.'), says('From wild.'))

    const [a, b] = await askBoth(client, question, { conversationId })
    assert.deepEqual([textOf(await a.toEnd()), textOf(await b.toEnd())], ['From calm.', 'From wild.'])

    assert.deepEqual([a.conversationId, b.conversationId], [conversationId, conversationId])
    assert.notEqual(a.traceId, b.traceId)
    const told = await toldOf(question)
    assert.deepEqual(told, [
      [`Before. ${client}`, 'Hello from the fake provider.', question],
      [`Before. ${client}`, 'Hello from the fake provider.', question],
    ])
    const questions = (await messagesOf(client, conversationId)).filter(({ content }) => content === question)
    assert.equal(questions.length, 1, 'both user messages are one')
    const traces = await Promise.all([a, b].map(({ traceId }) => get(server, `trace/${traceId}`, client)))
    assert.equal(new Set(traces.map(({ body }) => body.trace.user_message_id)).size, 1)
    assert.deepEqual(new Set(traces.map(({ body }) => body.trace.config_id)), new Set([calm.name, wild.name]))

    const { comparison_id } = await create(client, conversationId, [a, b])
    assert.equal((await contents(client, conversationId)).at(-1), 'From calm.')
    const pending = await get(server, `ab/pending?conversation_id=${conversationId}`, client)
    assert.equal(pending.body.comparison.comparison_id, comparison_id)
    assert.equal((await server.vote(client, comparison_id, 'B')).status, 200)
    assert.deepEqual((await contents(client, conversationId)).slice(-2), [question, 'From wild.'])

    const next = someone('next')
    await (await ask(server, client, { message: next, conversation_id: conversationId })).toEnd()
    assert.deepEqual((await toldOf(next))[0]?.slice(-3), [question, 'From wild.', next])
  })

  it('start one new conversation together', async () => {
    const client = someone()
    const question = `New. ${client}`
    await server.script(question, says('From calm.'), says('From wild.'))

    const [a, b] = await askBoth(client, question)
    await Promise.all([a.toEnd(), b.toEnd()])

    assert.equal(a.conversationId, b.conversationId)
    assert.equal((await get(server, 'list_conversations', client)).body.conversations.length, 1)
    assert.equal((await messagesOf(client, a.conversationId)).filter(({ sender }) => sender === 'User').length, 1)
    const { comparison_id } = await create(client, a.conversationId, [b, a])
    assert.equal((await server.vote(client, comparison_id, 'b')).status, 200)
    assert.deepEqual(await contents(client, a.conversationId), [question, 'From calm.'], 'the sides are the client’s')
  })

  it('are two answers also if the second comes after the end of the first', async () => {
    for (const conversation of ['named', null]) {
      const client = someone()
      const question = `Late. ${client}`
      const sentAt = nextTime()
      await server.script(question, says('From calm.'), says('From wild.'))
      const conversationId = conversation === null ? null : `${conversation}-${client}`
      const one = await ask(server, client, bodyOf(question, sentAt, conversationId, { config_name: calm.name }))
      await one.toEnd()

      const two = await ask(server, client, bodyOf(question, sentAt, conversationId, { config_name: wild.name }))
      await two.toEnd()

      assert.equal(two.conversationId, one.conversationId)
      assert.deepEqual((await toldOf(question))[1], [question])
      assert.deepEqual(await contents(client, one.conversationId), [question, 'From calm.'])
      const { comparison_id } = await create(client, one.conversationId, [one, two])
      assert.equal((await server.vote(client, comparison_id, 'b')).status, 200)
      assert.deepEqual(await contents(client, one.conversationId), [question, 'From wild.'])
    }
  })

  it('are not affected by the busy rules; a third request, or another question, waits for them', async () => {
    for (const when_busy of ['reject', 'cancel'] as const) {
      const client = someone()
      const question = `Busy. ${client}`
      const sentAt = nextTime()
      await server.script(question, hangsAfter('Calm…'), hangsAfter('Wild…'))
      const arms: [Arm, Arm] = [
        { config_name: calm.name, when_busy },
        { config_name: wild.name, when_busy },
      ]
      const [a, b] = await askBoth(client, question, { sentAt }, arms)
      await a.waitFor('chunk')
      await b.waitFor('chunk')

      if (when_busy === 'reject') {
        const more = { conversation_id: a.conversationId, when_busy }
        for (const body of [
          { ...bodyOf(question, sentAt, null, { config_name: 'default' }), ...more },
          { ...bodyOf('Another question.', sentAt, null, { config_name: wild.name }), ...more },
          { ...bodyOf(question, nextTime(), null, { config_name: wild.name }), ...more },
        ]) {
          const refused = await post(server, 'get_chat_response', client, body)
          assert.deepEqual([refused.status, refused.body.code], [409, 'conversation_busy'])
        }
      }
      const stopped = await post(server, 'cancel_stream', client, { conversation_id: a.conversationId })
      assert.equal(stopped.body.cancelled_count, 2, 'neither was cancelled by the other')
      await Promise.all([a.toEnd(), b.toEnd()])
    }
  })

  it('wait together for an answer that is under way, whatever the second says about that', async () => {
    const client = someone()
    const marks = [`busy ${client}`, `both ${client}`] as const
    await server.provider.script(
      [[{ text: 'Half ' }, { stall: true }, { text: 'whole.' }, { finish: 'stop' }]],
      marks[0],
    )
    const earlier = await ask(server, client, marks[0])
    await earlier.waitFor('chunk')
    const sentAt = nextTime()
    const body = (arm: Arm) => bodyOf(marks[1], sentAt, earlier.conversationId, arm)

    const a = await ask(server, client, body({ config_name: calm.name }))
    const b = await ask(server, client, body({ config_name: wild.name, when_busy: 'reject' }))
    assert.deepEqual(await toldOf(marks[1]), [])
    await server.provider.release()
    await Promise.all([a.toEnd(), b.toEnd()])

    assert.deepEqual(await toldOf(marks[1]), [
      [marks[0], 'Half whole.', marks[1]],
      [marks[0], 'Half whole.', marks[1]],
    ])
    assert.equal((await contents(client, earlier.conversationId)).length, 4)
  })

  it('attach to their own runs when they are sent again with their Idempotency-Key', async () => {
    const client = someone()
    const question = `Keys. ${client}`
    const sentAt = nextTime()
    const send = (name: string) =>
      ask(server, client, bodyOf(question, sentAt, null, { config_name: name }), {
        'idempotency-key': `${name} ${client}`,
      })

    const streams = await Promise.all([calm.name, wild.name, wild.name, calm.name].map(send))
    await Promise.all(streams.map((stream) => stream.toEnd()))
    const again = await Promise.all([calm.name, wild.name].map(send))
    await Promise.all(again.map((stream) => stream.toEnd()))

    const ids = streams.map(({ traceId }) => traceId)
    assert.equal(new Set(ids).size, 2)
    assert.deepEqual([ids[3], ids[2]], [ids[0], ids[1]])
    assert.deepEqual(
      again.map(({ traceId }) => traceId),
      ids.slice(0, 2),
    )
    assert.equal((await server.asked(question)).length, 2)
    assert.equal((await get(server, 'list_conversations', client)).body.conversations.length, 1)
  })

  it('leave the answer that came in the history if the other fails, in either order', async () => {
    for (const failing of [calm, wild]) {
      const client = someone()
      const question = `Fails. ${client}`
      await server.script(question, failing === calm ? down : says('Calm.'), failing === wild ? down : says('Wild!'))

      const [a, b] = await askBoth(client, question)
      await Promise.all([a.toEnd(), b.toEnd()])

      const expected = [question, failing === calm ? 'Wild!' : 'Calm.']
      await until('the answer to be the history', async () =>
        (await contents(client, a.conversationId)).length === expected.length ? true : undefined,
      )
      assert.deepEqual(await contents(client, a.conversationId), expected)
    }

    const client = someone()
    const question = `Failed. ${client}`
    const sentAt = nextTime()
    await server.script(question, down, says('Wild!'))
    const one = await ask(server, client, bodyOf(question, sentAt, null, { config_name: calm.name }))
    assert.equal((await one.toEnd()).at(-1)?.type, 'error')
    const two = await ask(server, client, bodyOf(question, sentAt, null, { config_name: wild.name }))
    await two.toEnd()
    assert.deepEqual(await contents(client, one.conversationId), [question, 'Wild!'])
  })

  it('ask for no vote and hide nothing until the client makes a comparison of them', async () => {
    const client = someone()
    const question = `No vote. ${client}`
    const [a, b] = await askBoth(client, question)
    await Promise.all([a.toEnd(), b.toEnd()])

    const pending = await get(server, `ab/pending?conversation_id=${a.conversationId}`, client)
    assert.equal(pending.body.comparison, null)
    const tokens = async (stream: ChunkStream) =>
      (await get(server, `trace/${stream.traceId}`, client)).body.trace.total_tokens_used
    assert.ok((await tokens(a)) > 0 && (await tokens(b)) > 0)

    await create(client, a.conversationId, [a, b])

    assert.deepEqual([await tokens(a), await tokens(b)], [null, null])
    assert.equal((await create(client, a.conversationId, [a, b])).success, true, 'twice is once')
  })

  it('may use tools, each in its own answer', async () => {
    const client = someone()
    const question = `Tools. ${client}`
    await server.provider.script([calls(['current_time', {}]), says('Calm: noon.')], question, calm.model)
    await server.provider.script([calls(['current_time', {}]), says('Wild: noon!')], question, wild.model)

    const [a, b] = await askBoth(client, question)

    assert.deepEqual([textOf(await a.toEnd()), textOf(await b.toEnd())], ['Calm: noon.', 'Wild: noon!'])
    assert.equal((await contents(client, a.conversationId)).length, 2)
  })
})
