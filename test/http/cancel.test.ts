// Cancelling works in every state of a run, once, and only for its owner. After a confirmed
// cancel no work starts, every open call has a result, and providers accept the history.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  assertCallsArePaired,
  calls,
  endOf,
  hangsAfter,
  type Json,
  messagesOf,
  named,
  runIdOf,
  someone,
  toolState,
  toolStatuses,
  until,
} from '../support/test-server.ts'
import { eventNames, type SseStream } from '../support/sse.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'

const { server, effects } = sharedMcpServer()

const cancel = (user: string, stream: SseStream, body?: unknown) =>
  server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user, ...(body === undefined ? {} : { body }) })

/** The next question in the conversation must be one that a provider accepts. */
async function nextRequest(user: string, conversationId: string): Promise<Json[]> {
  const marker = `next ${user}`
  const frames = await server.chatToEnd(user, { input: marker, conversationId })
  assert.equal(endOf(frames).status, 'succeeded')
  const [asked] = await server.asked(marker)
  const messages = messagesOf(asked)
  assertCallsArePaired(messages)
  return messages
}

test('in the middle of the text: the request to the provider is aborted, and the stream ends with agent.end cancelled', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([hangsAfter('A long ', 'story')], user)
  const stream = await server.chat(user, { input: user, conversationId })
  await stream.waitFor(({ json }) => json.data.delta === 'story')

  const answer = await cancel(user, stream, { reason: 'changed my mind' })
  await stream.ended()

  assert.equal(answer.status, 200)
  assert.equal(answer.body.status, 'cancelled')
  assert.equal(answer.body.accepted, true)
  assert.equal(endOf(stream.frames).status, 'cancelled')
  assert.equal(endOf(stream.frames).reason, 'changed my mind')
  assert.ok(!eventNames(stream.frames).includes('error'))
  assert.ok(!eventNames(stream.frames).includes('agent.message'))
  await until('the provider to be left', async () => (await server.asked(user)).find((request) => request.closedEarly))
  const messages = await nextRequest(user, conversationId)
  assert.deepEqual(
    messages.filter(({ role }) => role !== 'system').map(({ role }) => role),
    ['user', 'user'],
  )
})

test('before the first token', async () => {
  const user = someone()
  await server.provider.script([[{ stall: true }]], user)
  const stream = await server.chat(user, user)
  await server.askedTimes(user, 1)

  const answer = await cancel(user, stream)
  await stream.ended()

  assert.equal(answer.body.accepted, true)
  assert.equal(endOf(stream.frames).status, 'cancelled')
  await until('the provider to be left', async () => (await server.asked(user)).find((request) => request.closedEarly))
})

test('while a tool runs: the tool gets the signal, its call is closed, and the model is not asked again', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([calls(['slow', {}])], user)
  const stream = await server.chat(user, { input: user, conversationId })
  // Its first word is proof that it runs.
  await stream.waitFor(({ json }) => json.event === 'tool.state' && json.data.message === 'halfway')

  const answer = await cancel(user, stream)
  await stream.ended()

  assert.equal(answer.body.status, 'cancelled')
  assert.equal(toolStatuses(stream.frames).at(-1), 'cancelled')
  assert.equal(endOf(stream.frames).status, 'cancelled')
  await until('the tool to hear of it', () => (effects.lines().includes('slow cancelled') ? true : undefined))
  assert.equal((await server.asked(user)).length, 1)
  const messages = await nextRequest(user, conversationId)
  assert.match(messages.find(({ role }) => role === 'tool')?.content, /cancelled/)
})

test('while a person is awaited: the question is closed, and confirming it afterwards is 409 and runs nothing', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([calls(['charge', { amount: 41 }])], user)
  const stream = await server.chat(user, { input: user, conversationId })
  const { confirmationId } = (await stream.waitFor(toolState('awaiting_input'))).json.data
  await server.reaches(user, runIdOf(stream), 'awaiting_input')

  const answer = await cancel(user, stream)
  await stream.ended()
  const late = await server.call('POST', `/v1/tool-confirmations/${confirmationId}/confirm`, { user })

  assert.equal(answer.body.status, 'cancelled')
  assert.equal(toolStatuses(stream.frames).at(-1), 'cancelled')
  assert.equal(late.status, 409)
  assert.equal(late.body.details.confirmation.status, 'cancelled')
  assert.deepEqual(
    effects.lines().filter((line) => line === 'charge 41'),
    [],
  )
  await nextRequest(user, conversationId)
})

test('while it is queued behind another run: it ends without ever asking the model', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([hangsAfter('First')], `first ${user}`)
  const first = await server.chat(user, { input: `first ${user}`, conversationId })
  await first.waitFor(named('agent.delta'))
  const second = await server.chat(user, { input: `second ${user}`, conversationId })
  await second.waitFor(named('agent.start'))

  const answer = await cancel(user, second)
  await second.ended()

  assert.equal(answer.body.status, 'cancelled')
  assert.equal(answer.body.startedAt, null)
  assert.deepEqual(eventNames(second.frames), ['agent.start', 'agent.end'])
  assert.equal((await server.asked(`second ${user}`)).length, 0)
  assert.equal((await server.call('GET', `/v1/agent/runs/${runIdOf(first)}`, { user })).body.status, 'running')
  await cancel(user, first)
})

test('twice at the same time: one ending, and both requests get the answer that it is cancelled', async () => {
  const user = someone()
  await server.provider.script([hangsAfter('Hm')], user)
  const stream = await server.chat(user, user)
  await stream.waitFor(named('agent.delta'))

  const answers = await Promise.all([cancel(user, stream), cancel(user, stream), cancel(user, stream)])
  const later = await cancel(user, stream)
  await stream.ended()

  for (const { status, body } of answers) assert.deepEqual([status, body.status], [200, 'cancelled'])
  assert.deepEqual([later.status, later.body.status, later.body.accepted], [200, 'cancelled', false])
  assert.equal(stream.frames.filter(named('agent.end')).length, 1)
})

test('a run that has ended stays as it ended', async () => {
  const user = someone()
  const stream = await server.chat(user, 'hello')
  await stream.ended()

  const answer = await cancel(user, stream)

  assert.equal(answer.status, 200)
  assert.equal(answer.body.accepted, false)
  assert.equal(answer.body.status, 'succeeded')
  assert.equal((await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })).body.status, 'succeeded')
})

test('by another user: 404, and the run goes on', async () => {
  const user = someone()
  await server.provider.script([hangsAfter('Hm')], user)
  const stream = await server.chat(user, user)
  await stream.waitFor(named('agent.delta'))

  const answer = await cancel(someone('stranger'), stream)

  assert.equal(answer.status, 404)
  assert.equal(answer.body.code, 'run_not_found')
  const run = (await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })).body
  assert.deepEqual([run.status, run.cancelRequested], ['running', false])
  await cancel(user, stream)
})

test('with parallel calls: the finished one keeps its result, the others are closed', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script(
    [calls(['lookup', { word: 'tea' }, 'c_read'], ['slow', {}, 'c_slow'], ['charge', { amount: 42 }, 'c_pay'])],
    user,
  )
  const stream = await server.chat(user, { input: user, conversationId })
  await stream.waitFor(toolState('succeeded', 'lookup'))
  await stream.waitFor(toolState('awaiting_input', 'charge'))
  await stream.waitFor(({ json }) => json.data.message === 'halfway')

  await cancel(user, stream)
  await stream.ended()

  assert.equal(toolStatuses(stream.frames, 'lookup').at(-1), 'succeeded')
  assert.equal(toolStatuses(stream.frames, 'slow').at(-1), 'cancelled')
  assert.equal(toolStatuses(stream.frames, 'charge').at(-1), 'cancelled')
  const messages = await nextRequest(user, conversationId)
  assert.equal(messages.filter(({ role }) => role === 'tool').length, 3)
})
