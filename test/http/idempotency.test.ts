// The same Idempotency-Key and body attach to the same run; another body is 409. A retried POST
// never pays for a second run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  hangsAfter,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startTestServerProcess,
  sharedTestServer,
} from '../support/test-server.ts'

const server = sharedTestServer()

const keyOf = (user: string) => ({ 'idempotency-key': `key-${user}` })

test('the same key and body attach to the first run and replay it from its start', async () => {
  const user = someone()
  await server.provider.script([says('only ', 'once')], user)
  const first = await server.chat(user, user, keyOf(user))
  await first.ended()

  const second = await server.chat(user, user, keyOf(user))
  await second.ended()

  assert.equal(runIdOf(second), runIdOf(first))
  assert.equal(second.text(), first.text())
  assert.equal((await server.asked(user)).length, 1)
})

test('the order of the body’s fields does not make it another body', async () => {
  const user = someone()
  const body = { input: user, context: { a: 1, b: { c: 2, d: 3 } } }
  const turned = { context: { b: { d: 3, c: 2 }, a: 1 }, input: user }

  const first = await server.chat(user, body, keyOf(user))
  await first.ended()
  const second = await server.chat(user, turned, keyOf(user))
  await second.ended()

  assert.equal(runIdOf(second), runIdOf(first))
})

test('a run that is still under way is joined', async () => {
  const user = someone()
  await server.provider.script([hangsAfter('Hm')], user)
  const first = await server.chat(user, user, keyOf(user))
  await first.waitFor(named('agent.delta'))

  const second = await server.chat(user, user, keyOf(user))
  await second.waitFor(named('agent.delta'))
  await server.call('POST', `/v1/agent/runs/${runIdOf(first)}/cancel`, { user })
  await Promise.all([first.ended(), second.ended()])

  assert.equal(second.text(), first.text())
})

test('another body under the same key is 409 and starts nothing', async () => {
  const user = someone()
  await server.chatToEnd(user, 'hello', keyOf(user))

  const other = await server.chat(user, user, keyOf(user))
  await other.ended()

  assert.equal(other.status, 409)
  assert.match(other.text(), /"code":"idempotency_key_reused"/)
  assert.equal((await server.asked(user)).length, 0)
})

test('a key belongs to its owner: two users may use the same one', async () => {
  const [one, two] = [someone(), someone()]
  const key = keyOf(one)

  const first = await server.chat(one, 'hello', key)
  const second = await server.chat(two, 'hello', key)
  await Promise.all([first.ended(), second.ended()])

  assert.equal(second.status, 200)
  assert.notEqual(runIdOf(second), runIdOf(first))
})

test('twenty at once are one run: the provider is asked once, and all get the same bytes', async () => {
  const user = someone()
  await server.provider.script([says('just ', 'one ', 'answer')], user)

  const streams = await Promise.all(
    Array.from({ length: 20 }, () => server.chat(user, { input: user, conversationId: `conv-${user}` }, keyOf(user))),
  )
  await Promise.all(streams.map((stream) => stream.ended()))

  assert.deepEqual([...new Set(streams.map((stream) => stream.status))], [200])
  assert.equal(new Set(streams.map(runIdOf)).size, 1)
  assert.equal(new Set(streams.map((stream) => stream.text())).size, 1)
  assert.equal((await server.asked(user)).length, 1)
  const { body } = await server.call('GET', `/v1/conversations/conv-${user}/messages`, { user })
  assert.equal((body as unknown as Json[]).length, 2)
  assert.equal(((await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]).length, 1)
})

for (const whenBusy of ['cancel', 'reject']) {
  test(`with whenBusy ${whenBusy} the same request twice at once is one run, which is neither cancelled nor refused`, async () => {
    const user = someone()
    await server.provider.script([hangsAfter('Hm')], user)
    const body = { input: user, conversationId: `conv-${user}`, whenBusy }

    const streams = await Promise.all(Array.from({ length: 8 }, () => server.chat(user, body, keyOf(user))))
    await Promise.all(streams.map((stream) => stream.waitFor(named('agent.delta'))))
    const late = await server.chat(user, body, keyOf(user))
    await late.waitFor(named('agent.delta'))

    assert.deepEqual([...new Set([...streams, late].map((stream) => stream.status))], [200])
    assert.equal(new Set([...streams, late].map(runIdOf)).size, 1)
    const { body: run } = await server.call('GET', `/v1/agent/runs/${runIdOf(late)}`, { user })
    assert.deepEqual([run.status, run.cancelRequested], ['running', false])
    assert.equal((await server.asked(user)).length, 1)
    await server.call('POST', `/v1/agent/runs/${runIdOf(late)}/cancel`, { user })
  })
}

test('a key belongs to its route: the same one on another route is another request', async () => {
  const user = someone()
  const key = keyOf(user)
  const first = await server.chat(user, 'hello', key)
  await first.ended()

  const other = await server.call('POST', '/api/get_chat_response', {
    body: { client_id: user, message: 'hello' },
    headers: key,
  })

  assert.equal(other.status, 200)
  assert.notEqual(other.body.trace_id, runIdOf(first))
})

test('twenty at once with ten keys and no conversation are ten runs', async () => {
  const user = someone()

  const streams = await Promise.all(
    Array.from({ length: 20 }, (_, index) => server.chat(user, user, { 'idempotency-key': `k${index % 10}-${user}` })),
  )
  await Promise.all(streams.map((stream) => stream.ended()))

  assert.equal(new Set(streams.map(runIdOf)).size, 10)
  assert.equal((await server.asked(user)).length, 10)
})

test('a key that is empty or too long is 400', async () => {
  for (const key of ['', 'k'.repeat(201)]) {
    const answer = await server.call('POST', '/v1/agent/chat', {
      user: someone(),
      body: { input: 'hi' },
      headers: { 'idempotency-key': key },
    })

    assert.equal(answer.status, 400)
    assert.equal(answer.body.code, 'invalid_request')
  }
})

test('the key holds after a crash: the retry finds the run, and nothing is asked twice', async () => {
  const user = someone()
  const other = await startTestServerProcess({}, server.provider)
  const first = await other.chat(user, user, keyOf(user))
  await first.ended()
  await other.polylog.kill()
  const again = await other.restart()

  const second = await again.chat(user, user, keyOf(user))
  await second.ended()
  await again.close()

  assert.equal(second.text(), first.text())
  assert.equal((await server.asked(user)).length, 1)
})
