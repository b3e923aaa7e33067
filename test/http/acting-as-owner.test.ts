// In open mode, a request that names no user and addresses one thing by its id acts as the owner
// of that thing. Lists, requests that name another user, and required mode are not affected.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { ask, post } from '../support/chat-api.ts'
import {
  calls,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  toolState,
  sharedTestServers,
} from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'

const apiKeys = apiKeysSetting({ ann: 'ann-key', bob: 'bob-key' })

const [server, required] = sharedTestServers({}, { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeys })

type Things = {
  user: string
  runId: string
  conversationId: string
  confirmationId: string
  traceId: string
  messageId: string
  comparisonId: string
  jobId: string
}

/** One thing of each kind, owned by a new user; the run waits for a confirmation. */
async function makeThings(): Promise<Things> {
  const user = someone('owner')
  const conversationId = `conv-${user}`
  await server.provider.script([calls(['remember_note', { text: 'x' }])], user)
  const stream = await server.chat(user, { input: user, conversationId })
  const { json } = await stream.waitFor(toolState('awaiting_input'))
  await server.reaches(user, runIdOf(stream), 'awaiting_input')

  const answer = await ask(server, user, 'hello')
  const done = (await answer.toEnd()).at(-1)
  const compared = await openStream(`${server.polylog.baseUrl}/api/ab/compare`, {
    method: 'POST',
    body: { client_id: user, message: 'which one?', config_a: 'default', config_b: 'default' },
  })
  await compared.ended()
  const job = await server.call('POST', '/v1/jobs', { user, body: { skill_id: 'action-items' } })
  return {
    user,
    conversationId,
    runId: runIdOf(stream),
    confirmationId: json.data.confirmationId as string,
    traceId: answer.traceId,
    messageId: String(done?.message_id),
    comparisonId: String(compared.headers['x-comparison-id']),
    jobId: job.body.request_id as string,
  }
}

type Request = [method: string, path: (things: Things) => string, body?: (things: Things) => Json]

/** Requests that address one thing by its id. The last ones change it. */
const byId: Request[] = [
  ['GET', ({ runId }) => `/v1/agent/runs/${runId}`],
  ['GET', ({ runId }) => `/v1/agent/runs/${runId}/timeline`],
  ['GET', ({ runId }) => `/v1/agent/runs/${runId}/invariants`],
  ['GET', ({ traceId }) => `/v1/agent/runs/${traceId}/stream`],
  ['GET', ({ confirmationId }) => `/v1/tool-confirmations/${confirmationId}`],
  ['GET', ({ traceId }) => `/api/trace/${traceId}`],
  ['GET', ({ messageId }) => `/api/trace/by_message/${messageId}`],
  ['GET', ({ messageId }) => `/api/trace/message/${messageId}`],
  ['GET', ({ comparisonId }) => `/api/ab/comparison/${comparisonId}`],
  ['GET', ({ comparisonId }) => `/api/ab/${comparisonId}/stream`],
  ['GET', ({ jobId }) => `/v1/jobs/${jobId}`],
  ['GET', ({ jobId }) => `/v1/jobs/${jobId}/events/history`],
  ['POST', () => '/api/like', ({ messageId }) => ({ message_id: messageId })],
  ['POST', () => '/api/dislike', ({ messageId }) => ({ message_id: messageId })],
  ['POST', () => '/api/text_feedback', ({ messageId }) => ({ message_id: messageId, feedback_msg: 'good' })],
  ['POST', () => '/api/ab/preference', ({ comparisonId }) => ({ comparison_id: comparisonId, preference: 'a' })],
  ['POST', () => '/api/cancel_stream', ({ traceId }) => ({ trace_id: traceId })],
  ['POST', ({ confirmationId }) => `/v1/tool-confirmations/${confirmationId}/reject`, () => ({})],
  ['POST', ({ runId }) => `/v1/agent/runs/${runId}/cancel`, () => ({})],
  ['POST', ({ jobId }) => `/v1/jobs/${jobId}/cancel`, () => ({})],
]

describe('in open mode', () => {
  test('a request that names no user acts as the owner of the one thing that it addresses by its id', async () => {
    const things = await makeThings()
    for (const [method, path, body] of byId) {
      const answer = await server.call(method, path(things), body === undefined ? {} : { body: body(things) })
      assert.equal(answer.status, 200, `${method} ${path(things)} answered ${answer.status} ${answer.text}`)
    }

    const row = await server.call('GET', `/v1/tool-confirmations/${things.confirmationId}`, { user: things.user })
    assert.equal(row.body.status, 'rejected')
    const loaded = await post(server, 'load_conversation', things.user, {
      conversation_id: (await server.call('GET', `/api/trace/${things.traceId}`)).body.trace.conversation_id,
    })
    assert.equal(loaded.body.messages.at(-1).feedback, 'dislike', 'the reaction is stored as the owner’s')
  })

  test('a batch of decisions acts as the owner of each confirmation', async () => {
    const things = await makeThings()

    const answer = await server.call('POST', '/v1/tool-confirmations/batch/confirm', {
      body: { items: [{ id: things.confirmationId }, { id: 'invented' }] },
    })

    assert.deepEqual(
      (answer.body.items as Json[]).map(({ success, code }) => [success, code]),
      [
        [true, undefined],
        [false, 'tool_confirmation_not_found'],
      ],
    )
  })

  test('a request that names another user still gets 404, wherever it names it', async () => {
    const things = await makeThings()
    const stranger = someone('stranger')
    for (const [method, path, body] of byId) {
      const where = path(things)
      const answers = [await server.call(method, where, { user: stranger, ...(body && { body: body(things) }) })]
      answers.push(await server.call(method, `${where}?client_id=${stranger}`, body && { body: body(things) }))
      // Also in a field that the schema of the route does not list.
      for (const name of body === undefined ? [] : ['userId', 'client_id'])
        answers.push(await server.call(method, where, { body: { ...body?.(things), [name]: stranger } }))
      for (const answer of answers) assert.equal(answer.status, 404, `${method} ${where} answered ${answer.text}`)
    }
  })

  test('a name that cannot be read is an error, and not the same as no name', async () => {
    const { runId } = await makeThings()

    for (const body of [{ userId: 7 }, { client_id: 'x'.repeat(201) }, { client_id: ['a'] }]) {
      const answer = await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { body })
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body))
    }
    assert.equal((await server.call('GET', `/v1/agent/runs/${runId}?userId=a&userId=b`)).status, 400)
  })

  test('an id that does not exist is 404 for a request that names no user', async () => {
    const nothing = Object.fromEntries(Object.keys(await makeThings()).map((key) => [key, 'invented'])) as Things
    for (const [method, path, body] of byId) {
      const answer = await server.call(method, path(nothing), body === undefined ? {} : { body: body(nothing) })
      assert.equal(answer.status, 404, `${method} ${path(nothing)} answered ${answer.text}`)
    }
  })

  test('lists and names that clients choose stay those of the caller, who is anonymous without a name', async () => {
    const { conversationId, runId } = await makeThings()

    for (const path of [
      `/v1/agent/runs?conversationId=${conversationId}`,
      `/v1/tool-confirmations?runId=${runId}`,
      `/v1/agent/messages?conversationId=${conversationId}`,
    ]) {
      assert.deepEqual((await server.call('GET', path)).body, [], path)
    }
    const forgotten = await server.call('GET', `/v1/conversations/${conversationId}`)
    assert.deepEqual([forgotten.status, forgotten.body.code], [404, 'conversation_not_found'])
    assert.match(forgotten.body.message, /The request names no user: add \?userId=/)
    const stranger = await server.call('GET', `/v1/conversations/${conversationId}`, { user: someone('stranger') })
    assert.doesNotMatch(stranger.body.message, /names no user/)
  })
})

describe('context.userId', () => {
  test('names the user of a session', async () => {
    const user = someone()
    const body = { message: 'hello', context: { userId: user } }
    const stream = await openStream(`${server.polylog.baseUrl}/api/chat/stream`, { method: 'POST', body })
    await stream.ended()

    const mine = await server.call('GET', '/v1/agent/runs', { user })

    assert.deepEqual(
      (mine.body as unknown as Json[]).map(({ runId }) => runId),
      [runIdOf(stream)],
    )
  })

  test('is business data in a chat: it does not identify the caller', async () => {
    const user = someone()
    const started = await openStream(`${server.polylog.baseUrl}/v1/agent/chat`, {
      method: 'POST',
      body: { input: 'hello', context: { userId: user } },
    })
    await started.ended()
    const run = await server.call('GET', '/v1/agent/runs', { user })

    assert.equal(started.status, 200)
    assert.deepEqual(run.body, [])
  })
})

describe('in required mode', () => {
  test('another user’s things stay 404, and a request without a login is 401', async () => {
    const marker = someone()
    await required.provider.script([says('Mine.')], marker)
    const stream = await required.chat('ignored', marker, { 'x-api-key': 'ann-key' })
    await stream.waitFor(named('agent.end'))
    const path = `/v1/agent/runs/${runIdOf(stream)}`

    assert.equal((await required.call('GET', path, { headers: { 'x-api-key': 'ann-key' } })).status, 200)
    assert.equal((await required.call('GET', path, { headers: { 'x-api-key': 'bob-key' } })).status, 404)
    assert.equal((await required.call('GET', path)).status, 401)
  })
})

test('every route that belongs to a user accepts ?userId=', async () => {
  const { body } = await server.call('GET', '/openapi.json')
  const withoutUser = [
    '/v1/health',
    '/v1/ready',
    '/api/health',
    '/health',
    '/v1/tools',
    '/v1/providers',
    '/metrics',
    '/v1/operations',
    '/v1/agent/list',
    '/v1/models',
    '/v1/models/{model}',
  ]
  const missing: string[] = []
  for (const [path, methods] of Object.entries(body.paths as Record<string, Json>)) {
    if (withoutUser.includes(path) || path.startsWith('/v1/skills') || path === '/api/get_configs') continue
    for (const [method, operation] of Object.entries(methods as Record<string, Json>)) {
      const parameters = (operation.parameters ?? []) as { name: string; in: string }[]
      if (!parameters.some((one) => one.in === 'query' && one.name === 'userId')) missing.push(`${method} ${path}`)
    }
  }
  assert.deepEqual(missing, [])
})
