// Idempotency keys of one-shot requests: the same key gives the same answer again, whether it came
// from a run, from the cache or was a failure.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { goodAnswer, resultOf, sharedOneShotServer, wordBody } from '../support/one-shot.ts'
import { says, someone } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('an idempotency key', () => {
  test('finds the same run again, also when the result could come from elsewhere by now', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([goodAnswer, says('{"word":"newer"}')], user)
    const one = resultOf(await server.run(wordBody(user), key))
    resultOf(await server.run(wordBody(user, { options: { forceRefresh: true } })))
    const again = resultOf(await server.run(wordBody(user), key))

    assert.deepEqual(again, one)
    assert.equal((await server.asked(user)).length, 2)
  })

  test('of a request that was answered from the cache gives the same answer again', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([goodAnswer, says('{"word":"newer"}')], user)
    resultOf(await server.run(wordBody(user)))
    const hit = resultOf(await server.run(wordBody(user), key))
    resultOf(await server.run(wordBody(user, { options: { forceRefresh: true } })))

    assert.equal(hit.cached, true)
    assert.deepEqual(resultOf(await server.run(wordBody(user), key)), hit)
  })

  test('with another body is refused, whether the first one ran or was cached', async () => {
    const user = someone()
    await server.provider.script([goodAnswer], user)
    for (const name of ['ran', 'cached']) {
      const key = { 'idempotency-key': `${name}-${user}` }
      assert.equal(resultOf(await server.run(wordBody(user), key)).cached, name === 'cached')
      const answer = await server.run(wordBody(user, { input: { text: 'other' } }), key)
      assert.deepEqual([answer.status, answer.body.code], [409, 'idempotency_key_reused'])
    }
  })

  test('of a run that failed gives the failure again, and asks no model', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([[{ status: 500 }], goodAnswer], user)
    const one = await server.run(wordBody(user), key)
    const two = await server.run(wordBody(user), key)

    assert.deepEqual([one.status, two.status, two.body], [502, 502, one.body])
    assert.equal((await server.asked(user)).length, 1)
  })
})
