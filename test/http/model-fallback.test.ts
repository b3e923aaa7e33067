// A chain of models over named endpoints: the real server, and a provider in its own process that
// fails for one model and answers for the other.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { openStream } from '../support/sse.ts'
import { callServer, endOf, type Json, someone } from '../support/test-server.ts'

let provider: FakeProvider
let polylog: Polylog

before(async () => {
  provider = await startFakeProvider()
  polylog = await startPolylog({
    POLYLOG_PROVIDERS: JSON.stringify({
      first: { baseURL: provider.baseUrl, apiKeyEnv: 'FIRST_KEY', models: ['busy'] },
      second: { baseURL: provider.baseUrl, models: { calm: { price: { input: 1, output: 2 } } } },
      third: { baseURL: provider.baseUrl, apiKeyEnv: 'THIRD_KEY' },
    }),
    FIRST_KEY: 'sk-first-0123456789',
    POLYLOG_PROVIDER_RETRIES: '1',
    POLYLOG_PROVIDER_RETRY_BUDGET_MS: '2000',
  })
})
beforeEach(() => provider.reset())
after(async () => {
  await polylog?.dispose()
  await provider?.stop()
})

test('the second model answers if the first is overloaded, with an answer that fits the schema', async () => {
  const user = someone()
  const overloaded = [{ status: 503, body: { error: { message: 'busy sk-first-0123456789' } } }]
  await provider.script([overloaded, overloaded], undefined, 'busy')
  await provider.script([[{ text: '{"count": 1}' }, { finish: 'stop' }]], undefined, 'calm')

  const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    body: {
      userId: user,
      input: 'How many?',
      model: ['first/busy', 'second/calm'],
      output: { schema: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] } },
    },
  })
  await stream.ended()

  const end = endOf(stream.frames)
  assert.equal(end.status, 'succeeded', JSON.stringify(end))
  assert.deepEqual(end.data, { count: 1 })
  assert.equal(end.usage.unpricedSteps, 0)
  assert.deepEqual(
    (await provider.requests()).map(({ body }) => body.model),
    ['busy', 'busy', 'calm'],
  )
  const runId = String(stream.frames[0]?.json.data.runId)
  const timeline = await callServer(polylog.baseUrl, 'GET', `/v1/agent/runs/${runId}/timeline`, { user })
  const [told] = (timeline.body.events as Json[]).filter(({ event }) => event === 'diagnostic')
  assert.deepEqual(told?.payload.details, { from: 'first/busy', to: 'second/calm', reason: 'model_unavailable' })
  assert.doesNotMatch(timeline.text + polylog.log(), /sk-first/)
  const metrics = await callServer(polylog.baseUrl, 'GET', '/metrics')
  assert.match(
    metrics.text,
    /polylog_model_fallbacks_total\{provider="first",model="busy",reason="model_unavailable"\} 1/,
  )
})

test('the tokens of every failed attempt are counted, for the model that was asked', async () => {
  const user = someone()
  const spent = { usage: { prompt_tokens: 100, completion_tokens: 1 } }
  const failing = [spent, { error: { message: 'busy', type: 'overloaded_error' } }, { end: true as const }]
  await provider.script([failing, failing], undefined, 'busy')
  const answer = [{ text: 'Here.' }, { finish: 'stop', usage: { prompt_tokens: 50, completion_tokens: 5 } }]
  await provider.script([answer], undefined, 'calm')

  const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    body: { userId: user, input: 'Hello?', model: ['first/busy', 'second/calm'] },
  })
  await stream.ended()

  const end = endOf(stream.frames)
  assert.equal(end.status, 'succeeded', JSON.stringify(end))
  assert.deepEqual([end.usage.steps, end.usage.inputTokens, end.usage.outputTokens], [3, 250, 7])
  const report = await callServer(polylog.baseUrl, 'GET', '/v1/usage?groupBy=model', { user })
  assert.deepEqual(
    (report.body.groups as Json[]).map(({ key, usage }) => [key, usage.steps, usage.inputTokens]),
    [
      ['first/busy', 2, 200],
      ['second/calm', 1, 50],
    ],
  )
  const metrics = await callServer(polylog.baseUrl, 'GET', '/metrics')
  assert.match(metrics.text, /polylog_model_tokens_total\{provider="first",model="busy",kind="input"\} 200/)
})

test('a chain with a model that cannot be used is refused, and names the variable', async () => {
  const { status, body } = await callServer(polylog.baseUrl, 'POST', '/v1/agent/chat', {
    body: { input: 'Hi', model: ['second/calm', 'third/x'] },
  })

  assert.deepEqual([status, body.code], [400, 'unknown_model'])
  assert.match(String(body.message), /set THIRD_KEY/)
})

test('named endpoints are in the lists of models and providers, without their keys', async () => {
  const models = await callServer(polylog.baseUrl, 'GET', '/v1/models')
  const ids = (models.body.data as Json[]).map(({ id }) => id)
  assert.ok(ids.includes('first/busy') && ids.includes('second/calm'))
  const providers = await callServer(polylog.baseUrl, 'GET', '/v1/providers')
  const listed = (providers.body.providers as Json[]).map(({ provider: name, ready }) => [name, ready])
  assert.deepEqual(
    listed.filter(([name]) => ['first', 'second', 'third'].includes(String(name))),
    [
      ['first', true],
      ['second', true],
      ['third', false],
    ],
  )
  assert.doesNotMatch(models.text + providers.text, /sk-first/)
})
