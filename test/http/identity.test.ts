// Who the caller is: anonymous (open mode), a token, an API key. A login always wins over what a
// body says, and things of other users do not exist for the caller.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SignJWT, UnsecuredJWT } from 'jose'
import { apiKeysSetting, hashOfKey } from '../support/api-keys.ts'
import {
  calls,
  endOf,
  type Json,
  runIdOf,
  says,
  someone,
  toolState,
  sharedTestServers,
} from '../support/test-server.ts'

const secret = 'a secret that is long enough for a test'

/** `expires` is in seconds from the epoch; far in the future by default. */
async function token(claims: Json, key = secret, expires = 4_000_000_000): Promise<string> {
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(expires)
    .sign(new TextEncoder().encode(key))
}

const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

const logins = { POLYLOG_JWT_SECRET: secret, POLYLOG_API_KEYS: apiKeysSetting({ robot: 'robot-key' }) }
const [open, required] = sharedTestServers(logins, { ...logins, POLYLOG_AUTH: 'required' })

describe('in required mode', () => {
  test('without one everything but health and the API’s description is 401, with WWW-Authenticate', async () => {
    const { body } = await required.call('GET', '/openapi.json')
    const routes = Object.entries(body.paths as Record<string, Json>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{[^}]+\}/g, 'x')] as const),
    )
    assert.ok(routes.length > 10)
    for (const [method, path] of routes) {
      const answer = await required.call(method, path, method === 'GET' ? {} : { body: {} })
      if (['/v1/health', '/v1/ready', '/api/health', '/health'].includes(path)) {
        assert.equal(answer.status, 200)
        continue
      }
      assert.equal(answer.status, 401, `${method} ${path}`)
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
    assert.equal((await required.call('GET', '/docs')).status, 200)
  })

  test('a userId in body or query is no login', async () => {
    const answer = await required.call('POST', '/v1/agent/chat', { user: 'ann', body: { userId: 'ann', input: 'hi' } })

    assert.deepEqual([answer.status, answer.body.code], [401, 'unauthorized'])
  })

  test('a token of the shared secret is a login; its sub is the user', async () => {
    const user = someone()
    const headers = bearer(await token({ sub: user }))

    const stream = await required.chat('ignored', 'hello', headers)
    await stream.ended()
    const mine = await required.call('GET', '/v1/agent/runs', { headers })

    assert.equal(endOf(stream.frames).status, 'succeeded')
    assert.deepEqual(
      (mine.body as unknown as Json[]).map(({ runId }) => runId),
      [runIdOf(stream)],
    )
  })

  test('a token that is invalid in any way is 401', async () => {
    const good = await token({ sub: 'ann' })
    const [head, payload, signature] = good.split('.') as [string, string, string]
    const forged = Buffer.from(JSON.stringify({ sub: 'root' })).toString('base64url')
    const wrong = [
      await token({ sub: 'ann' }, 'another secret that is long enough'),
      await token({ sub: 'ann' }, secret, 1_000_000_000),
      await token({}),
      await token({ sub: '' }),
      await token({ sub: 'ann\ud800' }),
      new UnsecuredJWT({ sub: 'ann' }).encode(),
      `${head}.${forged}.${signature}`,
      `${head}.${payload}.`,
      'not-a-token',
    ]
    for (const value of wrong) {
      const answer = await required.call('GET', '/v1/conversations', { headers: bearer(value) })
      assert.deepEqual([answer.status, answer.body.code], [401, 'unauthorized'], value)
    }
    const basic = await required.call('GET', '/v1/conversations', { headers: { authorization: 'Basic YTpi' } })
    assert.equal(basic.status, 401)
  })

  test('an API key is a login, in X-API-Key and as a bearer token', async () => {
    for (const headers of [{ 'x-api-key': 'robot-key' }, bearer('robot-key')]) {
      const made = await required.call('POST', '/v1/conversations', { headers })
      const seen = await required.call('GET', `/v1/conversations/${made.body.id}`, {
        headers: bearer(await token({ sub: 'robot' })),
      })

      assert.equal(made.status, 200)
      assert.equal(seen.status, 200)
    }
    for (const key of ['wrong', hashOfKey('robot-key'), '']) {
      assert.equal((await required.call('GET', '/v1/conversations', { headers: { 'x-api-key': key } })).status, 401)
    }
  })

  test('key and token that name different users are 401', async () => {
    const headers = { 'x-api-key': 'robot-key', ...bearer(await token({ sub: 'ann' })) }

    assert.equal((await required.call('GET', '/v1/conversations', { headers })).status, 401)
  })
})

describe('a login wins', () => {
  test('over userId in the body and in the query, for chats and for messages', async () => {
    for (const server of [open, required]) {
      const [me, victim] = [someone('me'), someone('victim')]
      const mine = bearer(await token({ sub: me }))
      const theirs = bearer(await token({ sub: victim }))
      await server.chat('x', { input: 'secret', sessionId: 's' }, theirs).then((stream) => stream.ended())
      await server.chat(victim, { input: 'hello', sessionId: 's' }, mine).then((stream) => stream.ended())

      const asVictim = await server.call('GET', '/v1/agent/messages?sessionId=s', { user: victim, headers: mine })

      assert.deepEqual(
        (asVictim.body as unknown as Json[]).map(({ content }) => content),
        ['hello', 'Hello from the fake provider.'],
      )
    }
  })
})

describe('in open mode', () => {
  test('userId and client_id name the user, in one name space', async () => {
    const user = someone()
    await open.chatToEnd(user, { input: 'hi', conversationId: `conv-${user}` })
    const bodies = [{ userId: user }, { userId: undefined, client_id: user }]

    for (const body of bodies) {
      const answer = await open.call('POST', '/v1/agent/chat', {
        body: { ...body, input: 'again', conversationId: `conv-${user}` },
      })
      assert.equal(answer.status, 200, JSON.stringify(body))
    }
    // The same name of a caller without a name is a conversation of its own.
    await open.call('POST', '/v1/agent/chat', { body: { input: 'again', conversationId: `conv-${user}` } })
    const mine = await open.call('GET', `/v1/agent/messages?conversationId=conv-${user}`, { user })
    assert.equal((mine.body as unknown as Json[]).length, 6)
  })

  test('a name with half a character is refused, because stores would take it for another name', async () => {
    const raw = '{"input":"hi","userId":"ann\\ud800"}'
    const answer = await open.call('POST', '/v1/agent/chat', { raw, headers: { 'content-type': 'application/json' } })

    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'])
  })

  test('a credential that is wrong is refused here too, and not quietly ignored', async () => {
    const answer = await open.call('GET', '/v1/conversations', { headers: bearer('wrong') })

    assert.equal(answer.status, 401)
  })
})

// Every route of the API, and what another user gets who knows the ids of the owner. A route that is not in this table
// fails the test: if you add a route, add here how it refuses other users.
describe('another user’s ids', () => {
  type Owned = {
    runId: string
    conversationId: string
    confirmationId: string
    messageId: string
    responseId: string
  }
  type Row = {
    path?: (owned: Owned) => string
    body?: (owned: Owned) => Json
    expect: (answer: { status: number; body: Json; text: string }) => void
  }

  const notFound = ({ status, body }: { status: number; body: Json }) => {
    assert.equal(status, 404)
    assert.match(body.code, /_not_found$/)
  }
  const openAiNotFound = ({ status, body }: { status: number; body: Json }) => {
    assert.equal(status, 404)
    assert.match(body.error.code, /_not_found$/)
  }
  const empty = ({ status, body }: { status: number; body: Json }) => {
    assert.equal(status, 200)
    assert.deepEqual(body, [])
  }
  const noConversations = ({ body }: { body: Json }) => assert.deepEqual(body, { conversations: [] })
  const saysNothingAboutAnybody = ({ status }: { status: number }) => assert.equal(status, 200)
  const nothingDecided = ({ status, body }: { status: number; body: Json }) => {
    assert.equal(status, 200)
    assert.deepEqual([body.succeeded, body.items[0].code], [0, 'tool_confirmation_not_found'])
  }

  const onlyHello = ({ text }: { text: string }) => assert.match(text, /^id: \S+\ndata: \{"type":"hello",[^\n]*\n\n$/)
  const onlyTheHeader = ({ text }: { text: string }) => assert.match(text, /^\uFEFF?uid,name,[^\n]*\n$/)

  const rows: Record<string, Row> = {
    'POST /v1/agent/chat': {
      body: ({ conversationId }) => ({ input: 'hi', conversationId }),
      expect: notFound,
    },
    'POST /v1/agent/run': {
      body: ({ conversationId }) => ({ agentId: 'chat_conversation', input: { prompt: 'hi' }, conversationId }),
      expect: notFound,
    },
    'GET /v1/agent/snapshots': { path: ({ conversationId }) => `?scopeId=${conversationId}`, expect: empty },
    'GET /v1/agent/snapshots/{snapshotId}': { expect: notFound },
    'GET /v1/agent/snapshots/{snapshotId}/diff': { expect: notFound },
    'DELETE /v1/agent/messages': {
      path: ({ conversationId }) => `?conversationId=${conversationId}`,
      expect: ({ status }) => assert.equal(status, 204),
    },
    'GET /v1/agent/messages': { path: ({ conversationId }) => `?conversationId=${conversationId}`, expect: empty },
    'GET /v1/agent/runs': { path: ({ conversationId }) => `?conversationId=${conversationId}`, expect: empty },
    'GET /v1/agent/runs/{runId}': { expect: notFound },
    'PATCH /v1/agent/runs/{runId}': { body: () => ({ input: 'mine now' }), expect: notFound },
    'DELETE /v1/agent/runs/{runId}': { expect: notFound },
    'GET /v1/agent/runs/{runId}/timeline': { expect: notFound },
    'GET /v1/agent/runs/{runId}/stream': { expect: notFound },
    'GET /v1/agent/runs/{runId}/outputs/{outputId}': { expect: notFound },
    'GET /v1/agent/runs/{runId}/invariants': { expect: notFound },
    'GET /v1/agent/runs/{runId}/export': { expect: notFound },
    'POST /v1/import': { body: () => ({}), expect: ({ status }) => assert.equal(status, 400) },
    'POST /v1/agent/runs/{runId}/cancel': { body: () => ({}), expect: notFound },
    'POST /v1/agent/runs/{runId}/tool-results': {
      body: () => ({ results: [{ toolCallId: 'any', output: 1 }] }),
      expect: notFound,
    },
    'POST /v1/conversations': { body: () => ({}), expect: ({ status }) => assert.equal(status, 200) },
    'GET /v1/conversations': { path: ({ conversationId }) => `?before=${conversationId}`, expect: notFound },
    'GET /v1/conversations/{conversationId}': { expect: notFound },
    'GET /v1/agent/runs/{runId}/events': { expect: notFound },
    'GET /v1/agent/runs/{runId}/events/stream': { expect: notFound },
    'GET /v1/interactions': { path: ({ runId }) => `?runId=${runId}`, expect: empty },
    'POST /v1/interactions/{id}/reply': { body: () => ({ response: 'mine' }), expect: notFound },
    // For operators: of all users in open mode, and only for POLYLOG_ADMINS otherwise.
    'GET /v1/operations': { expect: ({ status }) => assert.equal(status, 200) },
    'GET /v1/feed': { path: () => '?follow=off', expect: onlyHello },
    'PATCH /v1/conversations/{conversationId}': { body: () => ({ title: 'mine now' }), expect: notFound },
    'DELETE /v1/conversations/{conversationId}': { expect: notFound },
    'GET /v1/conversations/{conversationId}/messages': { expect: notFound },
    'POST /v1/contacts': { body: () => ({ name: 'Ann' }), expect: ({ status }) => assert.equal(status, 201) },
    'GET /v1/contacts': { expect: ({ body }) => assert.deepEqual(body, { items: [], total: 0 }) },
    'POST /v1/contacts/import': { expect: ({ status }) => assert.equal(status, 415) },
    'GET /v1/contacts/export': { path: () => '?format=csv', expect: onlyTheHeader },
    'GET /v1/contacts/{contactId}': { expect: notFound },
    'PATCH /v1/contacts/{contactId}': { body: () => ({ name: 'mine now' }), expect: notFound },
    'DELETE /v1/contacts/{contactId}': { expect: notFound },
    'GET /v1/contacts/{contactId}/context': { expect: notFound },
    'GET /v1/contacts/{contactId}/conversations': { expect: notFound },
    'GET /v1/contacts/{contactId}/brief': { expect: notFound },
    'POST /v1/contacts/{contactId}/brief': { body: () => ({}), expect: notFound },
    'POST /v1/contacts/{contactId}/brief/refresh': { body: () => ({}), expect: notFound },
    'POST /v1/conversations/{conversationId}/archive': { body: () => ({}), expect: notFound },
    'GET /v1/conversations/{conversationId}/archive': { expect: notFound },
    'GET /v1/conversation-archives/{archiveId}': { expect: notFound },
    'PATCH /v1/conversation-archives/{archiveId}': { body: () => ({ payload: { facts: [] } }), expect: notFound },
    'POST /v1/conversation-archives/{archiveId}/apply': { body: () => ({}), expect: notFound },
    'POST /v1/conversation-archives/{archiveId}/discard': { body: () => ({}), expect: notFound },
    'GET /v1/tool-confirmations': { path: ({ runId }) => `?runId=${runId}`, expect: empty },
    'GET /v1/tool-confirmations/{id}': { expect: notFound },
    'POST /v1/tool-confirmations/{id}/confirm': { body: () => ({}), expect: notFound },
    'POST /v1/tool-confirmations/{id}/reject': { body: () => ({}), expect: notFound },
    'POST /v1/tool-confirmations/batch/confirm': {
      body: ({ confirmationId }) => ({ items: [{ id: confirmationId }] }),
      expect: nothingDecided,
    },
    'POST /v1/tool-confirmations/batch/reject': {
      body: ({ confirmationId }) => ({ items: [{ id: confirmationId }] }),
      expect: nothingDecided,
    },
    'POST /api/get_chat_response_stream': {
      body: ({ conversationId }) => ({ message: 'hi', conversation_id: conversationId }),
      expect: ({ text }) =>
        assert.match(text, /^data: \{"type":"error","status":403,.*"conversation_not_found"\}\n\n$/),
    },
    'POST /api/get_chat_response': {
      body: ({ conversationId }) => ({ message: 'hi', conversation_id: conversationId }),
      expect: notFound,
    },
    'GET /api/trace/{trace_id}': { expect: notFound },
    'GET /api/trace/by_message/{message_id}': { expect: notFound },
    'GET /api/trace/message/{message_id}': { expect: notFound },
    'POST /api/cancel_stream': { body: ({ runId }) => ({ trace_id: runId }), expect: notFound },
    'POST /api/load_conversation': {
      body: ({ conversationId }) => ({ conversation_id: conversationId }),
      expect: notFound,
    },
    'POST /api/delete_conversation': {
      body: ({ conversationId }) => ({ conversation_id: conversationId }),
      expect: notFound,
    },
    'POST /api/new_conversation': { body: () => ({}), expect: saysNothingAboutAnybody },
    'GET /api/list_conversations': { expect: noConversations },
    'POST /api/list_conversations': { body: () => ({}), expect: noConversations },
    'POST /api/like': { body: ({ messageId }) => ({ message_id: messageId }), expect: notFound },
    'POST /api/dislike': { body: ({ messageId }) => ({ message_id: messageId }), expect: notFound },
    'POST /api/text_feedback': {
      body: ({ messageId }) => ({ message_id: messageId, feedback_msg: 'x' }),
      expect: notFound,
    },
    'POST /api/ab/compare': {
      body: ({ conversationId }) => ({
        message: 'hi',
        conversation_id: conversationId,
        config_a: 'default',
        config_b: 'default',
      }),
      expect: notFound,
    },
    'GET /api/ab/{comparison_id}/stream': { expect: notFound },
    'GET /api/ab/comparison/{comparison_id}': { expect: notFound },
    'POST /api/ab/create': {
      body: ({ conversationId, messageId }) => ({
        conversation_id: conversationId,
        user_prompt_mid: messageId,
        response_a_mid: messageId,
        response_b_mid: messageId,
        config_a_id: 'default',
        config_b_id: 'default',
      }),
      expect: notFound,
    },
    'POST /api/ab/preference': { body: () => ({ comparison_id: 'any', preference: 'a' }), expect: notFound },
    'GET /api/ab/pending': { path: ({ conversationId }) => `?conversation_id=${conversationId}`, expect: notFound },
    'GET /api/ab/comparisons': { expect: saysNothingAboutAnybody },
    'GET /api/ab/metrics': { expect: saysNothingAboutAnybody },
    'GET /api/get_configs': { expect: saysNothingAboutAnybody },
    'GET /api/health': { expect: saysNothingAboutAnybody },
    'POST /api/chat/stream': {
      body: ({ conversationId }) => ({ message: 'hi', agentId: conversationId }),
      expect: saysNothingAboutAnybody,
    },
    'POST /v1/chat/completions': {
      body: ({ conversationId }) => ({
        model: 'chat_conversation',
        messages: [{ role: 'user', content: 'hi' }],
        metadata: { conversation_id: conversationId },
      }),
      expect: openAiNotFound,
    },
    'POST /v1/responses': {
      body: ({ responseId }) => ({ model: 'chat_conversation', input: 'hi', previous_response_id: responseId }),
      expect: openAiNotFound,
    },
    'GET /v1/responses/{responseId}': { expect: openAiNotFound },
    'POST /v1/responses/{responseId}/cancel': { body: () => ({}), expect: openAiNotFound },
    'DELETE /v1/responses/{responseId}': { expect: openAiNotFound },
    'GET /v1/responses/{responseId}/input_items': { expect: openAiNotFound },
    'GET /health': { expect: saysNothingAboutAnybody },
    'GET /v1/health': { expect: saysNothingAboutAnybody },
    'GET /v1/ready': { expect: saysNothingAboutAnybody },
    'GET /v1/tools': { expect: saysNothingAboutAnybody },
    'GET /v1/agent/chat': {
      path: ({ conversationId }) => `?chatId=${conversationId}`,
      expect: saysNothingAboutAnybody,
    },
    'GET /v1/agent/list': { expect: saysNothingAboutAnybody },
    'GET /v1/providers': { expect: saysNothingAboutAnybody },
    'GET /v1/models': { expect: saysNothingAboutAnybody },
    'POST /v1/files': { body: () => ({}), expect: ({ status }) => assert.equal(status, 200) },
    'GET /v1/files': { expect: ({ body }) => assert.deepEqual(body.data, []) },
    'GET /v1/files/{fileId}': { expect: notFound },
    'GET /v1/files/{fileId}/content': { expect: notFound },
    'DELETE /v1/files/{fileId}': { expect: notFound },
    'GET /v1/models/{model}': { expect: openAiNotFound },
    'GET /v1/doctor/stream': { path: () => '?frames=2&intervalMs=10', expect: saysNothingAboutAnybody },
    'GET /v1/usage': { expect: saysNothingAboutAnybody },
    'GET /metrics': { expect: saysNothingAboutAnybody },
  }

  for (const [path, body] of Object.entries({
    facts: { content: 'x' },
    todos: { content: 'x' },
    events: { title: 'x' },
  })) {
    const records = `/v1/contacts/{contactId}/${path}`
    rows[`GET ${records}`] = { expect: notFound }
    rows[`POST ${records}`] = { body: () => body, expect: notFound }
    rows[`PATCH ${records}/{recordId}`] = { body: () => body, expect: notFound }
    rows[`DELETE ${records}/{recordId}`] = { expect: notFound }
  }

  for (const path of ['/v1/ui/chat', '/v1/ui/v5/chat']) {
    const messages = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }]
    rows[`POST ${path}`] = { body: ({ conversationId }) => ({ id: conversationId, messages }), expect: notFound }
    rows[`GET ${path}/{conversationId}/stream`] = { expect: ({ status }) => assert.equal(status, 204) }
    rows[`POST ${path}/{conversationId}/stop`] = {
      body: () => ({}),
      expect: ({ body }) => assert.deepEqual(body, { stopped: [], stopping: [] }),
    }
  }

  const question = [{ id: 'm', role: 'user', content: 'hi' }]
  for (const path of ['/v1/ag-ui', '/v1/ag-ui/{agentId}']) {
    rows[`POST ${path}`] = {
      body: ({ conversationId }) => ({ threadId: conversationId, runId: 'r', messages: question }),
      expect: notFound,
    }
  }
  rows['GET /v1/ag-ui/threads/{threadId}/stream'] = { expect: notFound }
  rows['POST /v1/ag-ui/threads/{threadId}/stop'] = { body: () => ({}), expect: notFound }

  // What a run of the jobs family says, under both of its prefixes.
  const eventReads = ['events', 'events/history', 'invariants', 'logs', 'logs/range']
  for (const prefix of ['/v1/jobs', '/v1/temp-skill-runs'])
    for (const read of eventReads)
      rows[`GET ${prefix}/{request_id}/${read}`] = {
        path: () => (read === 'logs/range' ? '?stream=stdout' : ''),
        expect: notFound,
      }

  // Asked with a real job of the owner under each prefix.
  for (const prefix of ['/v1/jobs', '/v1/temp-skill-runs']) {
    for (const read of ['', '/interaction/pending', '/result', '/artifacts', '/artifacts/{path}', '/bundle'])
      rows[`GET ${prefix}/{request_id}${read}`] = { expect: notFound }
    for (const write of ['/upload', '/cancel', '/interaction/reply'])
      rows[`POST ${prefix}/{request_id}${write}`] = {
        body: () => ({ interaction_id: 1, response: 'yes' }),
        expect: notFound,
      }
  }
  rows['POST /v1/jobs'] = {
    body: () => ({ skill_id: 'text-digest' }),
    expect: ({ status }) => assert.equal(status, 400),
  }
  rows['POST /v1/temp-skill-runs'] = { body: () => ({}), expect: saysNothingAboutAnybody }
  for (const prefix of ['/v1/jobs', '/v1/temp-skill-runs'])
    rows[`GET ${prefix}`] = { expect: ({ body }) => assert.deepEqual(body, { jobs: [], next_before: null }) }
  rows['POST /v1/jobs/cleanup'] = { expect: ({ body }) => assert.equal(body.requests_deleted, 0) }
  rows['GET /v1/skills'] = { expect: saysNothingAboutAnybody }
  rows['GET /v1/skills/{skill_id}'] = { expect: notFound }

  async function routes(): Promise<string[]> {
    const { body } = await open.call('GET', '/openapi.json')
    return Object.entries(body.paths as Record<string, Json>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
  }

  /** A snapshot about a conversation of this user. */
  async function snapshotOf(user: string, conversationId: string): Promise<string> {
    await open.provider.script([says('{"title":"A title","summary":"A summary."}')], `about ${user}`)
    const messages = [{ role: 'user', content: `about ${user}` }]
    const body = { agentId: 'title_summary', input: { conversationId, messages }, userId: user }
    const answer = await open.call('POST', '/v1/agent/run', { body })
    assert.equal(typeof answer.body.snapshotId, 'string', answer.text)
    return answer.body.snapshotId as string
  }

  /** An archive of a conversation of this user, whose name is in its messages. */
  async function archiveOf(user: string, conversationId: string): Promise<Json> {
    const payload = { keyPoints: [], decisions: [], actionItems: [], participants: [] }
    await open.provider.script([says(JSON.stringify({ summary: 'A summary.', payload }))], user)
    const answer = await open.call('POST', `/v1/conversations/${conversationId}/archive`, { user, body: {} })
    assert.equal(answer.status, 200, answer.text)
    return answer.body
  }

  test('every route of the API stands in the table', async () => {
    assert.deepEqual((await routes()).toSorted(), Object.keys(rows).toSorted())
  })

  test('another user gets 404 or nothing on every route, also in formats and lists, and changes nothing', async () => {
    const user = someone()
    // Ids that the server minted are global; names that clients choose are per owner, so they never clash.
    const conversationId = String((await open.call('POST', '/v1/conversations', { user, body: {} })).body.id)
    await open.provider.script([calls(['remember_note', { text: 'x' }])], user)
    const stream = await open.chat(user, { input: user, conversationId })
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    const [asked] = (await open.call('GET', `/v1/conversations/${conversationId}/messages`, { user }))
      .body as unknown as Json[]
    const response = { model: 'chat_conversation', input: 'hello' }
    const owned: Owned = {
      conversationId,
      runId: runIdOf(stream),
      confirmationId: json.data.confirmationId,
      messageId: asked?.id,
      responseId: (await open.call('POST', '/v1/responses', { user, body: response })).body.id,
    }
    await open.reaches(user, owned.runId, 'awaiting_input')
    const contact = (await open.call('POST', '/v1/contacts', { user, body: { name: 'Ann' } })).body
    const facts = `/v1/contacts/${contact.id}/facts`
    const fact = (await open.call('POST', facts, { user, body: { content: 'likes tea' } })).body
    const archive = await archiveOf(user, conversationId)
    const file = (await open.call('POST', '/v1/files', { user, body: {} })).body
    // That only the owner can read an output or a comparison is tested where there is one.
    const ids: Record<string, string> = {
      runId: owned.runId,
      conversationId,
      threadId: conversationId,
      agentId: 'nothing',
      id: owned.confirmationId,
      outputId: 'any',
      comparison_id: 'any',
      trace_id: owned.runId,
      skill_id: 'nothing',
      path: 'any',
      model: 'none',
      responseId: owned.responseId,
      message_id: owned.messageId,
      contactId: contact.id,
      recordId: fact.id,
      snapshotId: await snapshotOf(user, conversationId),
      archiveId: archive.id,
      fileId: file.id,
    }
    const skill_id = 'action-items'
    const jobs = {
      '/v1/jobs/': (await open.call('POST', '/v1/jobs', { user, body: { skill_id } })).body.request_id as string,
      '/v1/temp-skill-runs/': (await open.call('POST', '/v1/temp-skill-runs', { user, body: {} })).body
        .request_id as string,
    }
    const seenByOwner = async () => [
      ...(await Promise.all(
        Object.entries(jobs).map(async ([prefix, id]) => (await open.call('GET', prefix + id, { user })).body),
      )),
      (await open.call('GET', `/v1/conversations/${conversationId}`, { user })).body,
      (await open.call('GET', `/v1/conversations/${conversationId}/messages`, { user })).body,
      (await open.call('GET', `/v1/agent/runs/${owned.runId}`, { user })).body,
      (await open.call('GET', `/v1/contacts/${contact.id}/context`, { user })).body,
      (await open.call('GET', `/v1/conversation-archives/${archive.id}`, { user })).body,
      (await open.call('GET', `/v1/tool-confirmations/${owned.confirmationId}`, { user })).body,
      (await open.call('GET', '/v1/files', { user })).body,
    ]
    const before = await seenByOwner()

    for (const route of await routes()) {
      const row = rows[route]
      if (row === undefined) continue // the test before this one says so
      const [method, pattern] = route.split(' ') as [string, string]
      const ask = (id: (name: string) => string) =>
        open.call(
          method,
          pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(id(name))) + (row.path?.(owned) ?? ''),
          {
            user: someone('stranger'),
            ...(row.body === undefined ? {} : { body: row.body(owned) }),
          },
        )
      const job = Object.entries(jobs).find(([prefix]) => pattern.startsWith(prefix))?.[1]
      const known = job === undefined ? ids : { ...ids, request_id: job }
      const answer = await ask((name) => known[name] ?? assert.fail(`${route}: what is ${name}?`))
      const invented = await ask(() => 'invented')
      try {
        row.expect(answer)
      } catch (error) {
        throw new Error(`${route} answered ${answer.status} ${answer.text}`, { cause: error })
      }
      // A stranger cannot even tell that there is something.
      assert.deepEqual([answer.status, answer.body.code], [invented.status, invented.body.code], route)
    }

    assert.deepEqual(await seenByOwner(), before)
    await open.call('POST', `/v1/agent/runs/${owned.runId}/cancel`, { user })
  })
})
