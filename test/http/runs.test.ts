// /v1/agent/runs: the status of a run, and the list of a user's runs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  calls,
  hangsAfter,
  type Json,
  named,
  runIdOf,
  someone,
  toolState,
  sharedTestServer,
} from '../support/test-server.ts'

const server = sharedTestServer()

const listOf = async (user: string, query = '') =>
  (await server.call('GET', `/v1/agent/runs${query}`, { user })).body as unknown as Json[]
const idsOf = async (user: string, query = '') => (await listOf(user, query)).map(({ runId }) => runId as string)

test('the status of a run follows it: running, then succeeded, with its times and its last event', async () => {
  const user = someone()
  await server.provider.script([hangsAfter('Hm')], user)
  const stream = await server.chat(user, { input: user, conversationId: `conv-${user}` })
  await stream.waitFor(named('agent.delta'))

  const running = (await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })).body
  const frames = await server.chatToEnd(user, 'elsewhere')
  const done = (await server.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}`, { user })).body

  assert.equal(running.status, 'running')
  assert.equal(running.conversationId, `conv-${user}`)
  assert.equal(running.agentId, 'chat_conversation')
  assert.equal(running.attempt, 1)
  assert.equal(running.endedAt, null)
  assert.equal(running.error, null)
  assert.equal(running.cancelRequested, false)
  assert.equal(running.startedAtMs, Date.parse(running.startedAt))
  assert.equal(done.status, 'succeeded')
  assert.equal(done.cursor, frames.at(-1)?.id)
  assert.equal(done.engine, 'local')
  assert.ok(done.endedAtMs >= done.startedAtMs && done.startedAtMs >= done.createdAtMs)
  await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
})

test('a failed run keeps its error in its status', async () => {
  const user = someone()
  await server.provider.script([[{ status: 401, body: { error: { message: 'wrong key' } } }]], user)
  const frames = await server.chatToEnd(user, user)

  const { body } = await server.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}`, { user })

  assert.equal(body.status, 'failed')
  assert.deepEqual(body.error, frames.at(-1)?.json.data.error)
  assert.equal(body.error.code, 'model_auth_failed')
})

test('runs are listed newest first, the own ones only, page by page', async () => {
  const user = someone()
  const made: string[] = []
  for (let index = 0; index < 5; index++) made.unshift((await server.chatToEnd(user, 'hi'))[0]?.json.data.runId)
  await server.chatToEnd(someone('stranger'), 'hi')

  const all = await idsOf(user)
  const firstPage = await idsOf(user, '?limit=2')
  const secondPage = await idsOf(user, `?limit=2&before=${firstPage.at(-1)}`)
  const thirdPage = await idsOf(user, `?limit=2&before=${secondPage.at(-1)}`)

  assert.deepEqual(all, made)
  assert.deepEqual([...firstPage, ...secondPage, ...thirdPage], made)
})

test('the list is narrowed by conversation and by status, also by several at once', async () => {
  const user = someone()
  const [inPlace] = await server.chatToEnd(user, { input: 'hi', conversationId: `place-${user}` })
  await server.provider.script([[{ status: 401, body: {} }]], `fail ${user}`)
  const [failed] = await server.chatToEnd(user, `fail ${user}`)
  await server.provider.script([calls(['remember_note', { text: 'x' }])], `ask ${user}`)
  const asking = await server.chat(user, `ask ${user}`)
  await asking.waitFor(toolState('awaiting_input'))
  await server.reaches(user, runIdOf(asking), 'awaiting_input')

  assert.deepEqual(await idsOf(user, `?conversationId=place-${user}`), [inPlace?.json.data.runId])
  assert.deepEqual(await idsOf(user, '?status=succeeded'), [inPlace?.json.data.runId])
  assert.deepEqual(await idsOf(user, '?status=awaiting_input'), [runIdOf(asking)])
  assert.deepEqual(await idsOf(user, '?status=failed,succeeded'), [failed?.json.data.runId, inPlace?.json.data.runId])
  assert.deepEqual(await idsOf(user, '?status=cancelled'), [])
  asking.leave()
})

test('an unknown status and a page size out of bounds are 400', async () => {
  for (const query of ['?status=happy', '?status=constructor', '?limit=0', '?limit=201', '?limit=many']) {
    const answer = await server.call('GET', `/v1/agent/runs${query}`, { user: someone() })

    assert.equal(answer.status, 400, query)
    assert.equal(answer.body.code, 'invalid_request')
  }
})

test('a timeline comes page by page, and says whether there is more', async () => {
  const user = someone()
  const frames = await server.chatToEnd(user, 'hello')
  const path = `/v1/agent/runs/${frames[0]?.json.data.runId}/timeline`
  const whole = (await server.call('GET', path, { user })).body

  const pages: Json[] = []
  for (let after = 0; ; after = pages.at(-1)?.events.at(-1).seq as number) {
    pages.push((await server.call('GET', `${path}?limit=3&after=${after}`, { user })).body)
    if (pages.at(-1)?.hasMore !== true) break
  }
  const beyond = (await server.call('GET', `${path}?after=99999`, { user })).body

  assert.equal(whole.hasMore, false)
  assert.equal(whole.skipped, 0)
  assert.deepEqual(
    pages.flatMap(({ events }) => events as Json[]),
    whole.events,
  )
  assert.ok(pages.slice(0, -1).every(({ events }) => events.length === 3))
  assert.deepEqual([beyond.events, beyond.hasMore], [[], false])
  for (const query of ['?limit=0', '?limit=10001', '?after=-1', '?after=x']) {
    assert.equal((await server.call('GET', path + query, { user })).status, 400, query)
  }
})

test('a conversation names the run that is under way in it, and its state', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([hangsAfter('Hm')], user)
  const stream = await server.chat(user, { input: user, conversationId })
  const delta = await stream.waitFor(named('agent.delta'))

  const { body } = await server.call('GET', `/v1/conversations/${conversationId}`, { user })

  assert.deepEqual(body.activeRun, { runId: runIdOf(stream), status: 'running', cursor: delta.id })
  await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  assert.equal((await server.call('GET', `/v1/conversations/${conversationId}`, { user })).body.activeRun, null)
})

test('deleting a conversation cancels its run, and takes its runs and messages along', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([hangsAfter('Hm')], user)
  const stream = await server.chat(user, { input: user, conversationId })
  await stream.waitFor(named('agent.delta'))

  const deleted = await server.call('DELETE', `/v1/conversations/${conversationId}`, { user })
  await stream.ended()

  assert.equal(deleted.status, 204)
  assert.equal(stream.frames.at(-1)?.json.data.status, 'cancelled')
  for (const path of [
    `/v1/conversations/${conversationId}`,
    `/v1/conversations/${conversationId}/messages`,
    `/v1/agent/runs/${runIdOf(stream)}`,
    `/v1/agent/runs/${runIdOf(stream)}/timeline`,
  ]) {
    assert.equal((await server.call('GET', path, { user })).status, 404, path)
  }
})
