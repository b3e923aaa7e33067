// Budgets of runs, users and days.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Action } from '../support/fake-provider.ts'
import { endOf, type Json, sharedTestServer, someone, startTestServer } from '../support/test-server.ts'

/** Each step of the tests uses 1000 tokens. */
const usage = { prompt_tokens: 900, completion_tokens: 100 }
const answers: Action[] = [{ text: 'Noon.' }, { finish: 'stop', usage }]
const asksTheTime = (id: string): Action[] => [
  { toolCalls: [{ id, name: 'current_time', arguments: '{}' }] },
  { finish: 'tool_calls', usage },
]

const server = sharedTestServer({
  POLYLOG_BUDGET_RUN_TOKENS: '2500',
  POLYLOG_BUDGET_USER_DAY_TOKENS: '5000',
})

const diagnosticsOf = async (user: string, runId: string) => {
  const { body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })
  return body.events.filter(({ event }: Json) => event === 'diagnostic').map(({ payload }: Json) => payload)
}

test('a run that has used its budget is warned at 80 % and fails before its next request; what it wrote stays', async () => {
  const user = someone()
  await server.provider.script([asksTheTime('c1'), asksTheTime('c2'), asksTheTime('c3'), answers], user)
  const frames = await server.chatToEnd(user, user)
  const end = endOf(frames)

  assert.deepEqual([end.status, end.error.code, end.usage.steps], ['failed', 'budget_exceeded', 3])
  assert.deepEqual(end.error.details, { scope: 'run', unit: 'tokens', resetsAt: null })
  assert.match(end.error.message, /POLYLOG_BUDGET_RUN_TOKENS/)
  assert.equal((await server.asked(user)).length, 3)
  const warnings = (await diagnosticsOf(user, String(end.runId))).filter(
    (one: Json) => one.code === 'budget_nearly_used',
  )
  assert.deepEqual(
    warnings.map(({ details }: Json) => details),
    [{ scope: 'run', unit: 'tokens' }],
  )
})

test('a user who has used the budget of the day is refused until it resets; others are not', async () => {
  const user = someone()
  const others = someone()
  await server.provider.script([answers, answers, answers, answers, answers], user)
  await server.provider.script([answers], others)
  const key = { 'idempotency-key': user }
  await server.chatToEnd(user, user, key)
  for (const _ of [2, 3, 4]) await server.chatToEnd(user, user)
  const fifth = endOf(await server.chatToEnd(user, user))

  assert.equal(fifth.status, 'succeeded')
  const [warning] = await diagnosticsOf(user, String(fifth.runId))
  assert.deepEqual([warning.code, warning.details.scope], ['budget_nearly_used', 'userDay'])
  const refused = await server.call('POST', '/v1/agent/chat', { user, body: { input: user } })
  assert.deepEqual([refused.status, refused.body.code], [429, 'budget_exceeded'])
  const { scope, resetsAt, retryAfterSeconds } = refused.body.details
  assert.equal(scope, 'userDay')
  assert.match(resetsAt, /T00:00:00\.000Z$/)
  assert.ok(retryAfterSeconds > 0 && retryAfterSeconds <= 86_400)
  assert.equal(refused.headers.get('retry-after'), String(retryAfterSeconds))
  assert.ok(refused.body.message.includes(resetsAt))
  const messages = [{ id: 'm1', role: 'user', content: 'Hi' }]
  const oneShot = { agentId: 'title_summary', input: { conversationId: 'c', messages } }
  const once = await server.call('POST', '/v1/agent/run', { user, body: oneShot })
  assert.deepEqual([once.status, once.body.code], [429, 'budget_exceeded'])
  assert.equal(endOf(await server.chatToEnd(user, user, key)).status, 'succeeded', 'a repeated request finds its run')
  assert.equal(endOf(await server.chatToEnd(others, others)).status, 'succeeded')
})

test('answers that a content filter stops use up the budget', async () => {
  const user = someone()
  const filtered: Action[] = [{ text: 'I must not' }, { finish: 'content_filter', usage }]
  await server.provider.script([filtered, filtered, filtered, filtered, filtered], user)
  for (const _ of [1, 2, 3, 4, 5])
    assert.equal(endOf(await server.chatToEnd(user, user)).error.code, 'model_content_filtered')

  const refused = await server.call('POST', '/v1/agent/chat', { user, body: { input: user } })
  assert.deepEqual([refused.status, refused.body.code], [429, 'budget_exceeded'])
})

test('the budget of the whole server stops everybody, and does not tell how much others used', async () => {
  const one = someone()
  const other = someone()
  const small = await startTestServer({ POLYLOG_BUDGET_DAY_TOKENS: '1000' })
  try {
    await small.provider.script([answers], one)
    assert.equal(endOf(await small.chatToEnd(one, one)).status, 'succeeded')

    const refused = await small.call('POST', '/v1/agent/chat', { user: other, body: { input: other } })

    assert.deepEqual([refused.status, refused.body.code, refused.body.details.scope], [429, 'budget_exceeded', 'day'])
    assert.doesNotMatch(refused.text, /1000/)
  } finally {
    await small.close()
  }
})
