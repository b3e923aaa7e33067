// Token counts and cost: in the last frame, on the run, on the conversation, in the trace
// and in the report of a user.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { agentFolder } from '../support/agent-folder.ts'
import type { Action } from '../support/fake-provider.ts'
import { endOf, type Json, says, sharedTestServer, someone } from '../support/test-server.ts'

const folder = agentFolder()
after(() => folder.dispose())
folder.write(
  'models.json',
  JSON.stringify({ asOf: '2026-11-16', models: { 'openai/fake': { price: { input: 1, cached: 0.1, output: 10 } } } }),
)
const server = sharedTestServer({ POLYLOG_MODEL_TABLE: join(folder.path, 'models.json') })

const usage = {
  prompt_tokens: 1000,
  completion_tokens: 30,
  prompt_tokens_details: { cached_tokens: 900 },
  completion_tokens_details: { reasoning_tokens: 20 },
}
const asksTheTime: Action[] = [
  { toolCalls: [{ id: 'c1', name: 'current_time', arguments: '{}' }] },
  { finish: 'tool_calls', usage },
]
const answers: Action[] = [{ text: 'Noon.' }, { finish: 'stop', usage }]
const oneStep = {
  steps: 1,
  inputTokens: 1000,
  cachedTokens: 900,
  cacheWriteTokens: 0,
  outputTokens: 30,
  reasoningTokens: 20,
  costMicroUsd: 100 + 90 + 300,
  unpricedSteps: 0,
}
const twoSteps = {
  ...oneStep,
  steps: 2,
  inputTokens: 2000,
  cachedTokens: 1800,
  outputTokens: 60,
  reasoningTokens: 40,
  costMicroUsd: 980,
}
const none = { ...oneStep, steps: 0, inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }

const reportOf = async (user: string, query = '') => (await server.call('GET', `/v1/usage${query}`, { user })).body

test('the usage of all steps is in agent.end, on the run, on the conversation and in the trace', async () => {
  const user = someone()
  await server.provider.script([asksTheTime, answers], user)
  const frames = await server.chatToEnd(user, { input: user, conversationId: `c-${user}` })
  const runId = String(frames[0]?.json.data.runId)

  assert.deepEqual(endOf(frames).usage, twoSteps)
  assert.deepEqual((await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body.usage, twoSteps)
  const list = (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
  assert.deepEqual(list[0]?.usage, twoSteps)
  assert.deepEqual((await server.call('GET', `/v1/conversations/c-${user}`, { user })).body.usage, twoSteps)
  const { trace } = (await server.call('GET', `/api/trace/${runId}`, { user })).body
  assert.deepEqual([trace.total_tokens_used, trace.total_cost_micro_usd], [2060, 980])
  const entry = trace.events.find((event: Json) => event.type === 'usage')
  assert.deepEqual([entry.cached_tokens, entry.reasoning_tokens, entry.cost_micro_usd], [900, 20, 490])
})

test('a model that is not in the price table has no cost: null and not 0, in every place', async () => {
  const user = someone()
  await server.provider.script([answers], user)
  const frames = await server.chatToEnd(user, { input: user, model: 'openai/not-in-the-table' })

  assert.deepEqual(endOf(frames).usage, { ...oneStep, costMicroUsd: null, unpricedSteps: 1 })
  const { total } = await reportOf(user)
  assert.deepEqual([total.costMicroUsd, total.unpricedSteps], [null, 1])
  const { trace } = (await server.call('GET', `/api/trace/${frames[0]?.json.data.runId}`, { user })).body
  assert.equal(trace.total_cost_micro_usd, null)
})

test('tokens that are reported for an answer of which nothing is used are counted in every place', async () => {
  const answersThatFail: Action[][] = [
    [{ text: 'I must not' }, { finish: 'content_filter', usage }],
    [{ text: 'Half' }, { usage }, { cut: true }],
    [{ text: 'Half' }, { usage }, { error: { message: 'The engine is on fire' } }, { end: true }],
  ]
  for (const answer of answersThatFail) {
    const user = someone()
    await server.provider.script([answer], user)
    const frames = await server.chatToEnd(user, { input: user, conversationId: `c-${user}` })
    const runId = String(frames[0]?.json.data.runId)

    assert.equal(endOf(frames).status, 'failed')
    assert.deepEqual(endOf(frames).usage, oneStep)
    assert.deepEqual((await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body.usage, oneStep)
    assert.deepEqual((await server.call('GET', `/v1/conversations/c-${user}`, { user })).body.usage, oneStep)
    assert.deepEqual((await reportOf(user)).total, oneStep)
    const { trace } = (await server.call('GET', `/api/trace/${runId}`, { user })).body
    assert.deepEqual([trace.total_tokens_used, trace.total_cost_micro_usd], [1030, 490])
    const timeline = (await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })).body.events as Json[]
    assert.deepEqual(
      timeline.flatMap(({ event, payload }) => (event === 'answer.discarded' ? [[payload.step, payload.model]] : [])),
      [[1, 'openai/fake']],
    )
  }
})

test('the tokens that were reported before a run was cancelled are counted', async () => {
  const user = someone()
  await server.provider.script([[{ text: 'Half' }, { usage }, { stall: true }]], user)
  const stream = await server.chat(user, user)
  await stream.waitFor(({ json }) => json.event === 'agent.delta')
  await server.call('POST', `/v1/agent/runs/${stream.frames[0]?.json.data.runId}/cancel`, { user })
  await stream.ended()

  assert.equal(endOf(stream.frames).status, 'cancelled')
  assert.deepEqual(endOf(stream.frames).usage, oneStep)
})

test('a provider that reports no tokens gives no usage', async () => {
  const user = someone()
  await server.provider.script([[{ text: 'Hm.' }, { finish: 'stop', usage: false }]], user)

  assert.equal('usage' in endOf(await server.chatToEnd(user, user)), false)
})

test('the report adds up what a user has used, by model, agent, day and user, and nothing of other users', async () => {
  const user = someone()
  await server.provider.script([answers, answers, answers], user)
  await server.chatToEnd(user, user)
  await server.chatToEnd(user, user)
  await server.chatToEnd(user, { input: user, model: 'openai/another' })
  const today = (await reportOf(user)).groups[0].key

  const byModel = await reportOf(user, '?groupBy=model')
  assert.deepEqual(
    byModel.groups.map((group: Json) => [group.key, group.usage.steps, group.usage.costMicroUsd]),
    [
      ['openai/another', 1, null],
      ['openai/fake', 2, 980],
    ],
  )
  assert.deepEqual([byModel.total.steps, byModel.total.costMicroUsd, byModel.total.unpricedSteps], [3, 980, 1])
  assert.deepEqual([byModel.to, byModel.pricesAsOf], [today, '2026-11-16'])
  for (const [groupBy, key] of [
    ['agent', 'chat_conversation'],
    ['user', user],
    ['day', today],
  ] as const) {
    const { groups } = await reportOf(user, `?groupBy=${groupBy}`)
    assert.deepEqual(
      groups.map((group: Json) => [group.key, group.usage.steps]),
      [[key, 3]],
    )
  }
  const stranger = await reportOf(someone())
  assert.deepEqual([stranger.groups, stranger.total], [[], { ...none, costMicroUsd: null }])
})

test('the report stays when the conversation is deleted', async () => {
  const user = someone()
  await server.provider.script([answers], user)
  await server.chatToEnd(user, { input: user, conversationId: `c-${user}` })

  assert.equal((await server.call('DELETE', `/v1/conversations/c-${user}`, { user })).status, 204)

  assert.deepEqual((await reportOf(user)).total, oneStep)
})

test('the report has pages, with a link to the next one', async () => {
  const user = someone()
  await server.provider.script([says('1'), says('2'), says('3')], user)
  for (const model of ['openai/a', 'openai/b', 'openai/c']) await server.chatToEnd(user, { input: user, model })

  const first = await server.call('GET', '/v1/usage?groupBy=model&limit=2', { user })
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const second = await server.call('GET', next, { user })

  const keys = ({ body }: { body: Json }) => body.groups.map((group: Json) => group.key)
  assert.deepEqual([keys(first), keys(second)], [['openai/a', 'openai/b'], ['openai/c']])
  assert.equal(second.headers.get('link'), null)
  assert.equal(second.body.total.steps, 3)
})

test('a period that is reversed, too long or not a date is refused with what to do', async () => {
  const user = someone()
  for (const [query, sentence] of [
    ['from=2026-11-02&to=2026-11-01', /Exchange them/],
    ['from=2025-01-01&to=2026-11-01', /at most 366 days/],
    ['from=yesterday', /from/],
    ['groupBy=colour', /groupBy/],
  ] as const) {
    const { status, body } = await server.call('GET', `/v1/usage?${query}`, { user })
    assert.equal(status, 400, query)
    assert.match(body.message, sentence)
  }
})

test('the metrics count the tokens, the cost, the times and the tools of runs', async () => {
  const user = someone()
  await server.provider.script([asksTheTime, answers], user)
  await server.chatToEnd(user, user)

  const lines = (await server.call('GET', '/metrics')).text.split('\n')
  const value = (series: string) =>
    Number(
      lines
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')
        .at(-1),
    )

  assert.ok(value('polylog_model_tokens_total{provider="openai",model="fake",kind="cached"}') >= 1800)
  assert.ok(value('polylog_model_cost_usd_total{provider="openai",model="fake"}') >= 0.00098)
  assert.ok(value('polylog_model_step_seconds_count{provider="openai",model="fake"}') >= 2)
  assert.ok(value('polylog_model_first_token_seconds_count{provider="openai",model="fake"}') >= 2)
  assert.ok(value('polylog_tool_seconds_count{tool="current_time",outcome="succeeded"}') >= 1)
})
