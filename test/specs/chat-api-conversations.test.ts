// The chat API specification over a real socket: conversations, answers asked for
// again, feedback, and who may see what.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { ask, get, post, textOf } from '../support/chat-api.ts'
import {
  calls,
  hangsAfter,
  type TestServer,
  type Json,
  says,
  someone,
  startTestServer,
  startTestServerProcess,
  until,
} from '../support/test-server.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { queryDatabase } from '../support/test-database.ts'

const { server } = sharedMcpServer()

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('Requirement: Conversation CRUD Operations', () => {
  test('Scenario: Create new conversation', async () => {
    const client = someone()
    assert.deepEqual((await post(server, 'new_conversation', client)).body, { conversation_id: null })
    assert.deepEqual((await get(server, 'list_conversations', client)).body, { conversations: [] })

    const first = await ask(server, client, { message: `What is the meaning of ${client}?`, conversation_id: null })
    const done = (await first.toEnd()).at(-1)
    const second = await ask(server, client, { message: 'And now?', conversation_id: done?.conversation_id })
    await second.toEnd()

    assert.equal(second.conversationId, first.conversationId)
    const { conversations } = (await get(server, 'list_conversations', client)).body
    assert.equal(conversations.length, 1)
    assert.equal(conversations[0].title, 'What is the meaning ...')
  })

  test('Scenario: Load conversation history', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'a' }]), says('First answer.')], client)
    const first = await ask(server, client, client)
    const done = (await first.toEnd()).at(-1)
    await (await ask(server, client, { message: 'Second question', conversation_id: first.conversationId })).toEnd()
    await post(server, 'dislike', client, { message_id: done?.message_id, feedback_msg: 'Too short', incorrect: true })
    await post(server, 'text_feedback', client, { message_id: done?.message_id, feedback_msg: 'Really.' })

    const { status, body } = await post(server, 'load_conversation', client, { conversation_id: first.conversationId })

    assert.equal(status, 200)
    assert.deepEqual(
      [body.conversation_id, body.title],
      [first.conversationId, client.length > 20 ? `${client.slice(0, 20)}...` : client],
    )
    assert.deepEqual(
      body.messages.map((message: Json) => [message.sender, message.content]),
      [
        ['User', client],
        ['Assistant', 'First answer.'],
        ['User', 'Second question'],
        ['Assistant', 'Hello from the fake provider.'],
      ],
    )
    assert.deepEqual(
      body.messages.map((message: Json) => [message.feedback, message.comment_count]),
      [
        [null, 0],
        ['dislike', 1],
        [null, 0],
        [null, 0],
      ],
    )
    const { trace } = body.messages[1]
    assert.deepEqual([trace.trace_id, trace.status, trace.total_tool_calls], [first.traceId, 'completed', 1])
    assert.ok(trace.events.some((event: Json) => event.type === 'tool_start'))
  })

  test('an answer that was written in several steps is one message, with the text of the stream and the id of done', async () => {
    const client = someone()
    const answer = [[{ text: 'Let me see.' }, ...calls(['lookup', { word: 'a' }])], says('Found.')]
    await server.provider.script([...answer, ...answer], client)
    const stream = await ask(server, client, client)
    const frames = await stream.toEnd()
    const whole = await post(server, 'get_chat_response', client, { message: client })

    const { body } = await post(server, 'load_conversation', client, { conversation_id: stream.conversationId })

    const last = body.messages[1]
    assert.equal(body.messages.length, 2)
    assert.deepEqual([last.content, last.message_id], ['Let me see.\n\nFound.', frames.at(-1)?.message_id])
    assert.deepEqual([textOf(frames), whole.body.response], [last.content, last.content])
  })

  test('a conversation whose answer was cancelled shows the question, with the trace', async () => {
    const client = someone()
    await server.provider.script([hangsAfter('Once ')], client)
    const stream = await ask(server, client, client)
    await stream.waitFor('chunk')
    await post(server, 'cancel_stream', client, { trace_id: stream.traceId })

    const { body } = await post(server, 'load_conversation', client, { conversation_id: stream.conversationId })

    assert.deepEqual(
      body.messages.map((message: Json) => [message.content, message.trace?.status]),
      [[client, 'cancelled']],
    )
  })

  test('Scenario: List user conversations', async () => {
    const client = someone()
    const made: string[] = []
    for (const message of ['one', 'two', 'three']) {
      const stream = await ask(server, client, message)
      await stream.toEnd()
      made.push(stream.conversationId)
    }
    await (await ask(server, client, { message: 'again', conversation_id: made[0] })).toEnd()

    for (const { body } of [
      await get(server, 'list_conversations', client),
      await post(server, 'list_conversations', client),
    ]) {
      const list = body.conversations as Json[]
      assert.deepEqual(
        list.map((row) => row.conversation_id),
        [made[0], made[2], made[1]],
      )
      assert.deepEqual(
        list.map((row) => row.title),
        ['one', 'three', 'two'],
      )
      for (const row of list) for (const at of [row.created_at, row.last_message_at]) assert.match(at, isoTime)
      const times = list.map((row) => Date.parse(row.last_message_at))
      assert.deepEqual(
        times.toSorted((left, right) => right - left),
        times,
      )
    }
    assert.equal((await get(server, 'list_conversations?limit=2', client)).body.conversations.length, 2)
    for (const limit of ['0', '501', 'many'])
      assert.equal((await get(server, `list_conversations?limit=${limit}`, client)).status, 400)
  })

  test('last_message_at is the time of the last message: a rename and a cancelled answer do not move it', async () => {
    const client = someone()
    await server.provider.script([hangsAfter('Half ')], `stop ${client}`)
    const stopped = await ask(server, client, `stop ${client}`)
    await stopped.waitFor('chunk')
    const later = await ask(server, client, `later ${client}`)
    await later.toEnd()
    await post(server, 'cancel_stream', client, { conversation_id: stopped.conversationId })
    const renamed = await server.call('PATCH', `/v1/conversations/${stopped.conversationId}`, {
      user: client,
      body: { title: 'Renamed' },
    })
    assert.equal(renamed.status, 200, renamed.text)

    const { conversations } = (await get(server, 'list_conversations', client)).body

    assert.deepEqual(
      conversations.map((row: Json) => row.conversation_id),
      [later.conversationId, stopped.conversationId],
    )
    for (const row of conversations as Json[]) {
      const { body } = await post(server, 'load_conversation', client, { conversation_id: row.conversation_id })
      assert.equal(row.last_message_at, body.messages.at(-1).created_at)
      assert.equal(body.last_message_at, row.last_message_at)
    }
  })

  test('numbers are taken as ids', async () => {
    const client = someone()
    const number = Math.floor(Math.random() * 1e12)
    const stream = await ask(server, client, { message: client, conversation_id: number })
    await stream.toEnd()

    assert.equal(stream.conversationId, String(number))
    assert.equal((await post(server, 'load_conversation', client, { conversation_id: number })).body.messages.length, 2)
  })

  test('deleting also removes messages, traces and feedback, and stops a run that is under way', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    const done = (await stream.toEnd()).at(-1)
    await post(server, 'like', client, { message_id: done?.message_id })
    await server.provider.script([hangsAfter('Once ')], `hang ${client}`)
    const hanging = await ask(server, client, { message: `hang ${client}`, conversation_id: stream.conversationId })
    await hanging.waitFor('chunk')

    const deleted = await post(server, 'delete_conversation', client, { conversation_id: stream.conversationId })

    assert.deepEqual(deleted.body, { success: true, deleted_conversation_id: stream.conversationId })
    for (const path of [`trace/${stream.traceId}`, `trace/by_message/${done?.message_id}`])
      assert.equal((await get(server, path, client)).status, 404)
    for (const path of ['load_conversation', 'delete_conversation'])
      assert.equal((await post(server, path, client, { conversation_id: stream.conversationId })).status, 404)
    assert.equal((await post(server, 'like', client, { message_id: done?.message_id })).status, 404)
    assert.equal((await hanging.toEnd()).at(-1)?.code, 'cancelled')
  })
})

describe('is_refresh', () => {
  test('answers again without a second question; the old answer stays stored and is no longer shown', async () => {
    const client = someone()
    await server.provider.script([says('Old.'), says('New.')], client)
    const first = await ask(server, client, client)
    const old = (await first.toEnd()).at(-1)

    const again = await ask(server, client, {
      last_message: [['User', client]],
      conversation_id: first.conversationId,
      is_refresh: true,
    })
    await again.toEnd()

    const { body } = await post(server, 'load_conversation', client, { conversation_id: first.conversationId })
    assert.deepEqual(
      body.messages.map((message: Json) => message.content),
      [client, 'New.'],
    )
    assert.equal(
      (await get(server, `trace/by_message/${old?.message_id}`, client)).body.trace.events[0].content,
      'Old.',
    )
    const asked = await server.asked(client)
    assert.deepEqual(
      asked[1]?.body.messages?.filter((message) => message.role !== 'system').map((message) => message.content),
      [client],
    )
  })

  test('keeps the old answer if the new one fails or is cancelled', async () => {
    const client = someone()
    await server.provider.script([says('Old.'), [{ text: 'Half' }, { cut: true }], hangsAfter('Half')], client)
    const first = await ask(server, client, client)
    await first.toEnd()
    const refresh = () => ask(server, client, { conversation_id: first.conversationId, is_refresh: true })

    assert.equal((await (await refresh()).toEnd()).at(-1)?.type, 'error')
    const hanging = await refresh()
    await hanging.waitFor('chunk')
    await post(server, 'cancel_stream', client, { conversation_id: first.conversationId })

    const { body } = await post(server, 'load_conversation', client, { conversation_id: first.conversationId })
    assert.deepEqual(
      body.messages.map((message: Json) => message.content),
      [client, 'Old.'],
    )
  })
})

describe('feedback', () => {
  test('the reasons of a dislike are stored as they were given, and only those', async () => {
    const client = someone()
    const stored: Json[] = []
    for (const reasons of [{ incorrect: true }, { unhelpful: 'true', feedback_msg: 'Why?' }, { inappropriate: true }]) {
      const stream = await ask(server, client, client)
      const message_id = (await stream.toEnd()).at(-1)?.message_id
      assert.equal((await post(server, 'dislike', client, { message_id, ...reasons })).body.state, 'dislike')
      const sql = 'SELECT * FROM feedback WHERE message_id = ?'
      stored.push(...(await queryDatabase(server.polylog.dataDir, sql, String(message_id))))
    }

    assert.deepEqual(
      stored.map((row) => [row.kind, row.incorrect, row.unhelpful, row.inappropriate, row.text]),
      [
        ['dislike', 1, 0, 0, null],
        ['dislike', 0, 1, 0, 'Why?'],
        ['dislike', 0, 0, 1, null],
      ],
    )
  })

  test('like and dislike replace each other, and the same again takes it back', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    const message_id = (await stream.toEnd()).at(-1)?.message_id
    const react = async (kind: string) => (await post(server, kind, client, { message_id })).body.state

    assert.deepEqual(
      [await react('like'), await react('like'), await react('dislike'), await react('like'), await react('like')],
      ['like', null, 'dislike', 'like', null],
    )
  })

  test('is shown with an answer without text too', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'a' }]), says()], client)
    const stream = await ask(server, client, client)
    const message_id = (await stream.toEnd()).at(-1)?.message_id
    await post(server, 'dislike', client, { message_id })

    const { body } = await post(server, 'load_conversation', client, { conversation_id: stream.conversationId })

    assert.deepEqual(
      body.messages.map((message: Json) => [message.sender, message.content, message.feedback]),
      [
        ['User', client, null],
        ['Assistant', '', 'dislike'],
      ],
    )
    assert.equal(body.messages[1].message_id, message_id)
  })

  test('names the field that is missing, with a message for each field', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    const message_id = (await stream.toEnd()).at(-1)?.message_id
    const bodies: Json[] = [{ feedback_msg: 'x' }, { message_id }, { message_id, feedback_msg: ' ' }]
    const answers = await Promise.all(bodies.map((body) => post(server, 'text_feedback', client, body)))

    assert.deepEqual(
      answers.map((answer) => answer.status),
      [400, 400, 400],
    )
    assert.equal(new Set(answers.map((answer) => answer.body.error)).size, 3)
    assert.deepEqual((await post(server, 'text_feedback', client, { message_id, feedback_msg: 'Fine.' })).body, {
      message: 'Feedback submitted',
    })
  })
})

describe('Ownership', () => {
  /** Every route of the family that addresses something, with its parameters. */
  const routes: [route: string, body: (owned: Json) => Json | undefined][] = [
    ['POST get_chat_response_stream', ({ conversation_id }) => ({ message: 'hi', conversation_id })],
    ['POST get_chat_response', ({ conversation_id }) => ({ message: 'hi', conversation_id })],
    ['POST get_chat_response_stream', ({ conversation_id }) => ({ is_refresh: true, conversation_id })],
    ['POST load_conversation', ({ conversation_id }) => ({ conversation_id })],
    ['POST delete_conversation', ({ conversation_id }) => ({ conversation_id })],
    ['POST cancel_stream', ({ conversation_id }) => ({ conversation_id })],
    ['POST cancel_stream', ({ trace_id }) => ({ trace_id })],
    ['POST like', ({ message_id }) => ({ message_id })],
    ['POST dislike', ({ message_id }) => ({ message_id })],
    ['POST text_feedback', ({ message_id }) => ({ message_id, feedback_msg: 'x' })],
    ['GET trace/{trace_id}', () => undefined],
    ['GET trace/by_message/{message_id}', () => undefined],
    ['GET trace/message/{message_id}', () => undefined],
  ]

  test('another user’s conversation, message and trace do not exist, on any route; nothing changes', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    const done = (await stream.toEnd()).at(-1) as Json
    const seen = async () => [
      (await post(server, 'load_conversation', client, { conversation_id: done.conversation_id })).body,
      (await get(server, `trace/${done.trace_id}`, client)).body,
    ]
    const before = await seen()

    for (const [route, bodyOf] of routes) {
      const [method, pattern] = route.split(' ') as [string, string]
      const path = pattern.replace(/\{(\w+)\}/, (_, name: string) => done[name] as string)
      const body = bodyOf(done)
      const asStranger = (who: Json) =>
        method === 'GET'
          ? server.call('GET', `/api/${path}${who.client_id === undefined ? '' : `?client_id=${who.client_id}`}`)
          : server.call('POST', `/api/${path}`, { body: { ...body, ...who } })
      const stranger = await asStranger({ client_id: someone('stranger') })

      if (path === 'get_chat_response_stream') {
        assert.match(stranger.text, /^data: \{"type":"error","status":403,.*,"code":"conversation_not_found"\}\n\n$/)
      } else {
        assert.equal(stranger.status, 404, `${route} answered ${stranger.text}`)
        assert.match(stranger.body.code, /_not_found$/)
      }
      // Without a name, a request acts as the owner of a trace or message that it names by its id.
      if (body?.conversation_id === undefined) continue
      const nobody = await asStranger({})
      assert.deepEqual(
        [nobody.status, nobody.body.code, String(nobody.body.error).startsWith('client_id missing: send client_id ')],
        [400, 'client_id_missing', true],
        route,
      )
    }
    assert.deepEqual(await seen(), before)
    for (const answer of [
      await get(server, 'list_conversations', someone('stranger')),
      await post(server, 'list_conversations', someone('stranger')),
    ]) {
      assert.deepEqual(answer.body, { conversations: [] })
    }
  })

  test('if a login is required, only the login identifies the owner; a client_id does not count', async () => {
    const keys = { ann: 'key-of-ann', bob: 'key-of-bob' }
    const closed = await startTestServer(
      { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeysSetting(keys) },
      server.provider,
    )
    try {
      const as = (key: string) => ({ 'x-api-key': key })
      const stream = await ask(closed, 'bob', 'hello', as(keys.ann))
      await stream.toEnd()
      const load = (headers: Record<string, string>) =>
        closed.call('POST', '/api/load_conversation', {
          body: { conversation_id: stream.conversationId, client_id: 'ann' },
          headers,
        })
      const [mine, bobs, nobodys] = [await load(as(keys.ann)), await load(as(keys.bob)), await load({})]

      assert.deepEqual([mine.status, bobs.status, nobodys.status], [200, 404, 401])
      assert.deepEqual(Object.keys(nobodys.body), ['error', 'code'])
      assert.equal(
        (await closed.call('GET', `/api/trace/${stream.traceId}`, { headers: as(keys.ann) })).status,
        200,
        'a login needs no client_id',
      )
    } finally {
      await closed.close()
    }
  })

  test('an id that a client makes up gives no access to another user’s run', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    await stream.toEnd()
    const elsewhere = await ask(server, client, client)
    await elsewhere.toEnd()

    const answer = await post(server, 'cancel_stream', client, {
      trace_id: stream.traceId,
      conversation_id: elsewhere.conversationId,
    })

    assert.equal(answer.status, 404)
  })
})

test('an answer asked for again that a crash cut off takes the place of the old one after the restart, and not before', async () => {
  const client = someone()
  const mortal = await startTestServerProcess({}, server.provider)
  let current: TestServer = mortal
  await server.provider.script([says('Old.'), hangsAfter('Half'), says('New.')], client)
  const first = await ask(mortal, client, client)
  await first.toEnd()
  const contents = async () => {
    const { body } = await post(current, 'load_conversation', client, { conversation_id: first.conversationId })
    return body.messages.map((message: Json) => message.content) as string[]
  }
  const again = await ask(mortal, client, { conversation_id: first.conversationId, is_refresh: true })
  await again.waitFor('chunk')
  assert.deepEqual(await contents(), [client, 'Old.'])

  await mortal.polylog.kill()
  current = await mortal.restart()

  const status = () => get(current, `trace/${again.traceId}`, client).then(({ body }) => body.trace.status as string)
  await until('the end', async () => ((await status()) === 'completed' ? true : undefined))
  assert.deepEqual(await contents(), [client, 'New.'])
  await current.close()
})
