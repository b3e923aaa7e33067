// The specification of the agent module's HTTP API, the streaming part: its examples word for
// word, its headers, its rules for the body, and GET /v1/agent/messages.

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import {
  endOf,
  hangsAfter,
  type Json,
  messagesOf,
  named,
  says,
  someone,
  startTestServerProcess,
  sharedTestServer,
} from '../support/test-server.ts'
import type { SeenRequest } from '../support/fake-provider.ts'
import { eventNames, journaled } from '../support/sse.ts'

const server = sharedTestServer({ POLYLOG_PING_MS: '40' })

const noCurl = spawnSync('curl', ['--version']).error === undefined ? false : 'there is no curl on this machine'

const systemOf = (request: SeenRequest | undefined) => messagesOf(request).filter(({ role }) => role === 'system')
const talkOf = (request: SeenRequest | undefined) =>
  messagesOf(request)
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => [role, content])

describe('the examples of the specification', () => {
  test('the cURL example runs as it is written', { skip: noCurl }, async () => {
    const { stdout } = await promisify(execFile)('curl', [
      '-sN',
      '-H',
      'Content-Type: application/json',
      '-H',
      'Accept: text/event-stream',
      '-X',
      'POST',
      `${server.polylog.baseUrl}/v1/agent/chat`,
      '-d',
      `{
    "messages": [
      { "role": "user", "content": "帮我想一句给老朋友的新年祝福" }
    ],
    "userId": "user_123",
    "conversationId": "conv_123"
  }`,
    ])

    const blocks = stdout.trimEnd().split('\n\n')
    assert.match(blocks[0] ?? '', /^id: 1\nevent: agent\.start\ndata: \{"event":"agent\.start","data":\{"runId":"/)
    assert.match(blocks.at(-1) ?? '', /event: agent\.end\ndata: .*"status":"succeeded"/)
  })

  test('the Node example runs as it is written, and the same conversation goes on', async () => {
    const res = await fetch(`${server.polylog.baseUrl}/v1/agent/chat`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify({
        messages: [{ role: 'user', content: '帮我想一句给老朋友的新年祝福' }],
        userId: 'user_123',
        conversationId: 'conv_123',
      }),
    })
    let text = ''
    for await (const chunk of res.body ?? []) text += Buffer.from(chunk).toString('utf8')

    assert.equal(res.status, 200)
    assert.match(
      text,
      /event: agent\.delta\ndata: \{"event":"agent\.delta","data":\{"id":"[^"]+","delta":"Hello ","role":"assistant"\}\}\n\n/,
    )
    assert.match(text, /event: agent\.end\n/)
  })

  test('the example of GET /v1/agent/messages shows what was said before', async () => {
    const { body } = await server.call('GET', '/v1/agent/messages?userId=user_123&conversationId=conv_123')

    const messages = body as unknown as Json[]
    assert.deepEqual(
      messages.slice(-2).map(({ role }) => role),
      ['user', 'assistant'],
    )
    const [first] = messages
    assert.equal(first?.content, '帮我想一句给老朋友的新年祝福')
    assert.equal(first?.createdAtMs, Date.parse(first?.createdAt))
    assert.deepEqual(first?.references, [])
    assert.equal(first?.toolCallId, null)
    assert.equal(typeof first?.metadata, 'object')
  })
})

describe('the stream', () => {
  test('the response has exactly the headers of the specification', async () => {
    for (const query of ['', '?format=sse', '?format=']) {
      const stream = await server.chat(someone(), 'hello', {}, query)
      await stream.ended()

      assert.equal(stream.status, 200)
      assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
      assert.equal(stream.headers['cache-control'], 'no-cache, no-transform')
      assert.equal(stream.headers.connection, 'keep-alive')
      assert.equal(stream.headers['x-accel-buffering'], 'no')
      assert.equal(stream.headers['content-encoding'], undefined)
    }
  })

  test('an unknown format is 400 and starts nothing', async () => {
    const user = someone()

    const stream = await server.chat(user, 'hello', {}, '?format=morse')
    await stream.ended()

    assert.equal(stream.status, 400)
    assert.match(stream.text(), /"code":"unknown_format"/)
    assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
  })

  test('each provider chunk is one agent.delta, in order', async () => {
    const user = someone()
    const words = Array.from({ length: 200 }, (_, index) => `w${index} `)
    await server.provider.script([says(...words)], user)

    const frames = await server.chatToEnd(user, `many ${user}`)

    assert.deepEqual(
      frames.filter(named('agent.delta')).map(({ json }) => json.data.delta),
      words,
    )
    assert.equal(endOf(frames).output, words.join(''))
  })

  test('ping has {at} and comes again and again', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('…')], user)
    const stream = await server.chat(user, { input: user, onDisconnect: 'cancel' })

    await stream.waitFor(() => stream.frames.filter(named('ping')).length >= 2)

    assert.match(stream.text(), /event: ping\ndata: \{"event":"ping","data":\{"at":"\d{4}-[^"]+Z"\}\}\n\n/)
    stream.leave()
  })
})

describe('messages and prompt', () => {
  test('a body with neither messages nor prompt is 400 and starts nothing', async () => {
    const user = someone()
    const bodies = [
      {},
      { messages: [] },
      { prompt: '' },
      { prompt: '   ' },
      { messages: null, prompt: null },
      { context: { a: 1 }, conversationId: `conv-${user}` },
      { messages: [{ role: 'assistant', content: 'I speak first' }] },
      { messages: [{ role: 'user', content: '  ' }] },
    ]
    for (const body of bodies) {
      const answer = await server.call('POST', '/v1/agent/chat', { user, body })

      assert.equal(answer.status, 400, JSON.stringify(body))
      assert.equal(answer.body.code, 'messages_or_prompt_required')
      assert.match(answer.body.message, /messages|prompt|text/)
    }
    assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
    assert.deepEqual((await server.call('GET', '/v1/conversations', { user })).body, [])
  })

  test('prompt and input become one user message each', async () => {
    for (const field of ['prompt', 'input']) {
      const user = someone()

      await server.chatToEnd(user, { [field]: `just this ${user}` })

      const [asked] = await server.asked(user)
      assert.deepEqual(talkOf(asked), [['user', `just this ${user}`]])
    }
  })

  test('messages are given to the model in order, the last user message last', async () => {
    const user = someone()

    await server.chatToEnd(user, {
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'three ' },
            { type: 'text', text: user },
          ],
        },
      ],
    })

    const [asked] = await server.asked(user)
    assert.deepEqual(talkOf(asked), [
      ['user', 'one'],
      ['assistant', 'two'],
      ['user', `three ${user}`],
    ])
  })

  test('content of an unknown kind, and a file at a URL, are refused with a sentence', async () => {
    const send = (part: object) =>
      server.call('POST', '/v1/agent/chat', {
        user: someone(),
        body: { messages: [{ role: 'user', content: [part] }] },
      })

    const unknown = await send({ type: 'hologram', data: 'x' })
    assert.deepEqual([unknown.status, unknown.body.code], [400, 'unsupported_content'])
    assert.match(unknown.body.message, /hologram/)
    const long = await server.call('POST', '/v1/agent/chat', {
      user: someone(),
      body: {
        messages: [
          { role: 'system', content: [{ type: 'h'.repeat(100_000) }] },
          { role: 'user', content: 'Hello' },
        ],
      },
    })
    assert.equal(long.body.code, 'unsupported_content')
    assert.ok(long.text.length < 1_000, `${long.text.length} characters`)
    const url = await send({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } })
    assert.deepEqual([url.status, url.body.code], [400, 'file_url_refused'])
    assert.match(url.body.message, /POST \/v1\/files/)
  })

  test('with a conversation the stored history wins, and only the last user message is new', async () => {
    const user = someone()
    const conversationId = `conv-${user}`
    await server.provider.script([says('Stored answer.')], user)
    await server.chatToEnd(user, { input: `stored question ${user}`, conversationId })

    await server.chatToEnd(user, {
      conversationId,
      messages: [
        { role: 'user', content: 'a history of my own' },
        { role: 'assistant', content: 'which never was' },
        { role: 'user', content: `new question ${user}` },
      ],
    })

    const [, second] = await server.asked(user)
    assert.deepEqual(talkOf(second), [
      ['user', `stored question ${user}`],
      ['assistant', 'Stored answer.'],
      ['user', `new question ${user}`],
    ])
    const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
    assert.equal((body as unknown as Json[]).length, 4)
  })
})

describe('settings reach the provider', () => {
  test('temperature, maxTokens and model', async () => {
    const user = someone()

    await server.chatToEnd(user, { input: user, temperature: 0.7, maxTokens: 1024, model: 'special-1' })

    const [asked] = await server.asked(user)
    assert.equal(asked?.body.temperature, 0.7)
    assert.equal(asked?.body.max_tokens ?? asked?.body.max_completion_tokens, 1024)
    assert.equal(asked?.body.model, 'special-1')
    assert.equal(asked?.body.stream, true)
  })

  test('max_tokens is the same as maxTokens, which wins if both are given', async () => {
    const one = someone()
    const both = someone()

    await server.chatToEnd(one, { input: one, max_tokens: 33 })
    await server.chatToEnd(both, { input: both, max_tokens: 33, maxTokens: 44 })

    const tokens = async (marker: string) => {
      const [asked] = await server.asked(marker)
      return asked?.body.max_tokens ?? asked?.body.max_completion_tokens
    }
    assert.equal(await tokens(one), 33)
    assert.equal(await tokens(both), 44)
  })

  test('without them the provider decides: nothing is sent', async () => {
    const user = someone()

    await server.chatToEnd(user, { input: user, temperature: null, maxTokens: null, model: null })

    const [asked] = await server.asked(user)
    assert.equal('temperature' in (asked?.body ?? {}), false)
    assert.equal('max_tokens' in (asked?.body ?? {}), false)
    assert.equal(asked?.body.model, 'fake')
  })

  test('a model of a provider that is not set up is 400', async () => {
    const answer = await server.call('POST', '/v1/agent/chat', {
      user: someone(),
      body: { input: 'hi', model: 'anthropic/claude-1' },
    })

    assert.equal(answer.status, 400)
    assert.equal(answer.body.code, 'unknown_model')
  })

  test('context reaches the model as a second system message, with sorted keys and in bounds', async () => {
    const user = someone()

    await server.chatToEnd(user, {
      input: user,
      context: {
        zebra: 'last',
        any: '自定义上下文',
        long: 'x'.repeat(5000),
        composer: { inputMode: 'text', secretPlan: 'no' },
      },
    })

    const [asked] = await server.asked(user)
    const system = systemOf(asked)
    assert.equal(system.length, 2)
    const content = system[1]?.content as string
    assert.match(content, /"any":"自定义上下文"/)
    assert.ok(content.indexOf('"any"') < content.indexOf('"zebra"'))
    assert.ok(content.length < 1500)
    assert.doesNotMatch(content, /secretPlan/)
  })

  test('without context there is one system message only', async () => {
    for (const context of [undefined, null, {}]) {
      const user = someone()

      await server.chatToEnd(user, { input: user, context })

      const [asked] = await server.asked(user)
      assert.equal(systemOf(asked).length, 1)
    }
  })

  test('context.composer.enabledTools limits the tools, to none if none of them exists', async () => {
    const one = someone()
    const none = someone()

    await server.chatToEnd(one, { input: one, context: { composer: { enabledTools: ['current_time'] } } })
    await server.chatToEnd(none, { input: none, context: { composer: { enabledTools: ['nothing'] } } })

    const offered = async (marker: string) =>
      (((await server.asked(marker))[0]?.body.tools ?? []) as Json[]).map((tool) => tool.function.name)
    assert.deepEqual(await offered(one), ['current_time'])
    assert.deepEqual(await offered(none), [])
  })
})

describe('keys: user, conversation and session', () => {
  test('a sessionId is a key per owner: the same one goes on with the same conversation', async () => {
    const user = someone()
    const stranger = someone()
    const sessionId = `session-${user}`

    const first = await server.chatToEnd(user, { input: `one ${user}`, sessionId })
    const second = await server.chatToEnd(user, { input: `two ${user}`, sessionId })
    const other = await server.chatToEnd(stranger, { input: `three ${stranger}`, sessionId })

    // Each client sees the name that it chose; the stranger's conversation is another one with the same name.
    for (const frames of [first, second, other]) assert.equal(frames[0]?.json.data.conversationId, sessionId)
    const [askedByStranger] = await server.asked(stranger)
    assert.equal(talkOf(askedByStranger).length, 1)
    // Told once, to whom it is news.
    assert.ok(eventNames(first).includes('context.patch'))
    assert.ok(!eventNames(second).includes('context.patch'))
    const [, asked] = await server.asked(user)
    assert.equal(talkOf(asked).length, 3)
  })

  test('/v1/agent/messages finds them by conversationId or sessionId; conversationId wins', async () => {
    const user = someone()
    const sessionId = `session-${user}`
    const frames = await server.chatToEnd(user, { input: `in the session ${user}`, sessionId })
    const conversationId = frames[0]?.json.data.conversationId as string
    await server.chatToEnd(user, { input: 'elsewhere', conversationId: `other-${user}` })
    const contents = async (query: string) =>
      ((await server.call('GET', `/v1/agent/messages?${query}`, { user })).body as unknown as Json[]).map(
        ({ content }) => content,
      )

    const bySession = await contents(`sessionId=${sessionId}`)
    const byConversation = await contents(`conversationId=${conversationId}`)
    const byBoth = await contents(`conversationId=other-${user}&sessionId=${sessionId}`)

    assert.equal(bySession[0], `in the session ${user}`)
    assert.deepEqual(byConversation, bySession)
    assert.equal(byBoth[0], 'elsewhere')
  })

  test('/v1/agent/messages of an unknown key, of another user’s, or without a key is an empty list', async () => {
    const user = someone()
    const stranger = someone()
    await server.chatToEnd(user, { input: 'mine', conversationId: `conv-${user}` })

    for (const query of [`conversationId=conv-${user}`, 'conversationId=never', 'sessionId=never', '']) {
      const answer = await server.call('GET', `/v1/agent/messages?${query}`, { user: stranger })

      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body, [])
    }
  })

  test('a key without conversation and session is the session "default"', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'in the default session', sessionId: 'default' })

    const { body } = await server.call('GET', '/v1/agent/messages', { user })

    assert.equal((body as unknown as Json[])[0]?.content, 'in the default session')
  })

  test('without a userId the user is anonymous, who owns conversations like anyone', async () => {
    const conversationId = `conv-${someone()}`
    const answer = await server.call('POST', '/v1/agent/chat', { body: { input: 'who am I?', conversationId } })
    assert.equal(answer.status, 200)

    const asAnonymous = await server.call('GET', `/v1/agent/messages?conversationId=${conversationId}`)
    const byName = await server.call('GET', `/v1/agent/messages?conversationId=${conversationId}`, {
      user: 'anonymous',
    })
    const asSomeone = await server.call('GET', `/v1/agent/messages?conversationId=${conversationId}`, {
      user: someone(),
    })

    assert.equal((asAnonymous.body as unknown as Json[]).length, 2)
    assert.deepEqual(byName.body, asAnonymous.body)
    assert.deepEqual(asSomeone.body, [])
  })

  test('an id that the server minted is global: another user’s is 404 and stays untouched', async () => {
    const user = someone()
    const frames = await server.chatToEnd(user, 'mine')
    const conversationId = frames[0]?.json.data.conversationId as string

    const foreign = await server.chat(someone(), { input: 'let me in', conversationId })
    await foreign.ended()

    assert.equal(foreign.status, 404)
    assert.match(foreign.text(), /"code":"conversation_not_found"/)
    const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
    assert.equal((body as unknown as Json[]).length, 2)
  })

  test('the history survives a restart: nothing lives only in memory', async () => {
    const user = someone()
    const other = await startTestServerProcess({}, server.provider)
    await other.chatToEnd(user, { input: 'remember me', sessionId: 's' })
    const before = await other.call('GET', '/v1/agent/messages?sessionId=s', { user })
    await other.polylog.kill()

    const again = await other.restart()
    const afterwards = await again.call('GET', '/v1/agent/messages?sessionId=s', { user })
    await again.close()

    assert.equal((before.body as unknown as Json[]).length, 2)
    assert.deepEqual(afterwards.body, before.body)
  })
})

test('the body of the specification with all its fields is accepted', async () => {
  const user = someone()

  const frames = await server.chatToEnd(user, {
    messages: [{ role: 'user', content: '今天天气怎么样？' }],
    prompt: '可选，直接给模型的一段提示',
    context: { any: '自定义上下文' },
    model: '可选模型名',
    temperature: 0.7,
    maxTokens: 1024,
    max_tokens: 1024,
    conversationId: `conv_123_${user}`,
    sessionId: 'session_123',
  })

  assert.equal(endOf(frames).status, 'succeeded')
  assert.equal(journaled(frames)[0]?.json.data.input, '今天天气怎么样？')
})
