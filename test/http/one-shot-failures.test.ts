// One-shot runs that fail or are cancelled, and runs whose client leaves or whose server stops: what
// the caller gets, and which runs go on.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { goodAnswer, resultOf, sharedOneShotServer, wordBody } from '../support/one-shot.ts'
import { type Json, someone, until } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('a run that does not end well', () => {
  test('is 502 ai_provider_error if the provider fails, and says that it may be repeated', async () => {
    const user = someone()
    for (const [failure, cause] of [
      [[{ status: 500 }], 'model_unavailable'],
      [[{ text: '{"wo' }, { cut: true }], 'model_stream_incomplete'],
    ] as const) {
      await server.provider.script([[...failure]], user)
      const { status, body } = await server.run(wordBody(user))

      assert.deepEqual([status, body.code, body.retryable, body.details.cause], [502, 'ai_provider_error', true, cause])
      const { body: run } = await server.call('GET', `/v1/agent/runs/${body.details.runId}`, { user })
      assert.equal(run.status, 'failed')
    }
    await server.provider.script([[{ status: 401 }]], user)
    const { status, body } = await server.run(wordBody(user))
    assert.deepEqual([status, body.code, body.retryable], [502, 'ai_provider_error', undefined], 'it cannot help')
  })

  test('is 409 run_cancelled for all waiting requests if it is cancelled meanwhile', async () => {
    const user = someone()
    await server.provider.script([[{ text: '{' }, { stall: true }]], user)
    const answers = [server.run(wordBody(user)), server.run(wordBody(user))]
    const runId = await openRun(user)
    await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user, body: {} })

    for (const { status, body } of await Promise.all(answers)) {
      assert.deepEqual([status, body.code, body.details.runId], [409, 'run_cancelled', runId])
    }
  })

  test('goes on if the client leaves, and its result is stored', async () => {
    const user = someone()
    await server.provider.script(
      [[{ text: '{"word":' }, { stall: true }, { text: '"fine"}' }, { finish: 'stop' }]],
      user,
    )
    const leave = new AbortController()
    const left = fetch(`${server.baseUrl}/v1/agent/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wordBody(user)),
      signal: leave.signal,
    })
    const runId = await openRun(user)
    await until('the first words', async () => {
      const { body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })
      return (body.events as Json[]).some(({ event }) => event === 'agent.delta') ? true : undefined
    })
    leave.abort()
    await assert.rejects(left)
    await server.provider.release()

    await until('the run to end', async () => {
      const { body } = await server.call('GET', `/v1/agent/runs/${runId}`, { user })
      return body.status === 'succeeded' ? true : undefined
    })
    const again = resultOf(await server.run(wordBody(user)))
    assert.deepEqual([again.cached, again.runId, (await server.asked(user)).length], [true, runId, 1])
  })

  test('goes on after a restart if the server is stopped; the caller gets the advice to send the request again', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([[{ text: '{' }, { stall: true }], goodAnswer], user)
    const waiting = server.run(wordBody(user), key)
    const runId = await openRun(user)
    await server.restart()

    const told = await waiting
    assert.deepEqual([told.status, told.body.code, told.body.details.runId], [503, 'shutting_down', runId])
    const again = resultOf(await server.run(wordBody(user), key))
    assert.deepEqual([again.runId, again.data.word], [runId, 'fine'])
  })

  async function openRun(user: string): Promise<string> {
    return await until('a running run', async () => {
      const { body } = await server.call('GET', '/v1/agent/runs?status=running', { user })
      return (body as unknown as Json[])[0]?.runId as string | undefined
    })
  }
})
