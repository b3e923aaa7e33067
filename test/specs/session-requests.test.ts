// Requests to the session API: which are refused and how, which of their fields reach the model, and
// idempotency keys. Also the health route, which counts sessions.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { agentIdOf, say, sayToEnd, sharedSessionServer } from '../support/session-api.ts'
import { hangsAfter, type Json, messagesOf, someone, startTestServer, until } from '../support/test-server.ts'

const { server, workspace, script, post } = sharedSessionServer()

describe('the request', () => {
  test('an invalid one is 400 with a code and a sentence that names the field', async () => {
    const wrong: [unknown, RegExp][] = [
      [{}, /message/],
      [{ message: '' }, /message must be a non-empty string/],
      [{ message: ' \n' }, /message must be a non-empty string/],
      [{ message: 5 }, /message/],
      [{ message: 'hi', context: 'x' }, /context/],
      [{ message: 'hi', context: { workingDir: 5 } }, /workingDir/],
      [{ message: 'hi', context: { files: 'a.txt' } }, /files/],
      [{ message: 'hi', mode: 7 }, /mode/],
    ]
    for (const [body, sentence] of wrong) {
      const answer = await post(body)
      assert.deepEqual([answer.status, answer.body.error], [400, 'BAD_REQUEST'], JSON.stringify(body))
      assert.match(answer.body.message, sentence)
      assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
    }
    const broken = await server.call('POST', '/api/chat/stream', {
      raw: '{"message":',
      headers: { 'content-type': 'application/json' },
    })
    assert.deepEqual([broken.status, broken.body.error], [400, 'BAD_REQUEST'])
  })

  test('a body that is too large is 413, an unknown path 404, both in the same shape', async () => {
    const large = await post({ message: 'x'.repeat(3 * 1024 * 1024) })
    const nowhere = await server.call('POST', '/api/chat/nowhere', { body: {} })

    assert.deepEqual([large.status, large.body.error], [413, 'PAYLOAD_TOO_LARGE'])
    assert.deepEqual([nowhere.status, nowhere.body.error], [404, 'NOT_FOUND'])
  })

  test('too many are 429 with Retry-After, and a missing or wrong key 401', async () => {
    const key = 'a-key'
    const strict = await startTestServer(
      {
        POLYLOG_AUTH: 'required',
        POLYLOG_API_KEYS: apiKeysSetting({ ann: key }),
        POLYLOG_RATE_LIMIT: '3',
      },
      server.provider,
    )
    try {
      const ask = (headers: Record<string, string>, body: Json = { message: 'hi' }) =>
        strict.call('POST', '/api/chat/stream', { body, headers })
      const without = await ask({})
      const wrong = await ask({ 'x-api-key': 'wrong' })
      const others = await ask({ 'x-api-key': key }, { message: 'hi', context: { workingDir: 'sessions/x' } })
      await ask({ 'x-api-key': key })
      const good = await ask({ 'x-api-key': key })
      const limited = await ask({ 'x-api-key': key })

      assert.deepEqual([without.status, without.body.error], [401, 'UNAUTHORIZED'])
      assert.deepEqual([wrong.status, wrong.body.error], [401, 'UNAUTHORIZED'])
      assert.deepEqual([others.status, others.body.error], [400, 'BAD_REQUEST'], 'the directories of others are in it')
      assert.equal(good.status, 200)
      assert.deepEqual([limited.status, limited.body.error], [429, 'RATE_LIMITED'])
      assert.match(limited.headers.get('retry-after') ?? '', /^\d+$/)
      assert.equal((await strict.call('GET', '/health')).status, 200)
    } finally {
      await strict.close()
    }
  })

  test('the prompt names the directory, the mode, and the tools that will be refused', async () => {
    const [user, reader] = [someone(), someone('reader')]

    const agentId = agentIdOf(await sayToEnd(server, user, user))
    await sayToEnd(server, reader, { message: reader, mode: 'ask' })

    const systemOf = async (marker: string) =>
      messagesOf((await server.asked(marker))[0])
        .filter(({ role }) => role === 'system')
        .map(({ content }) => String(content))
        .join('\n')
    const told = await systemOf(user)
    assert.ok(told.includes(join(workspace, 'sessions', agentId)))
    assert.match(told, /agreed that you change files.*calls are refused: .*charge/)
    assert.match(await systemOf(reader), /read and not change anything.*None of your tools waits for a person/)
  })

  test('files and outputsPath reach the model', async () => {
    const user = someone()

    await sayToEnd(server, user, { message: user, outputsPath: 'results', context: { files: ['data/a.nc'] } })

    const system = JSON.stringify(messagesOf((await server.asked(user))[0]).filter(({ role }) => role === 'system'))
    assert.match(system, /data\/a\.nc/)
    assert.match(system, /results/)
  })

  test('the same Idempotency-Key is the same run in the same session', async () => {
    const user = someone()
    const directories = () => readdirSync(join(workspace, 'sessions')).length
    const first = await say(server, user, user, { 'idempotency-key': user })
    const before = directories()
    const again = await say(server, user, user, { 'idempotency-key': user })

    assert.deepEqual(await again.toEnd(), await first.toEnd())
    assert.equal(again.runId, first.runId)
    assert.equal(directories(), before, 'no other session was made on the way')
    assert.equal((await server.asked(user)).length, 1)
  })
})

describe('health', () => {
  test('counts sessions, names no path, and needs no login', async () => {
    const user = someone()
    const before = (await server.call('GET', '/health')).body
    await script(user, hangsAfter('Wait'))
    const stream = await say(server, user, user)
    await stream.waitFor('text')

    const during = (await server.call('GET', '/health')).body

    assert.deepEqual(Object.keys(during), ['status', 'service', 'timestamp', 'conversations'])
    assert.deepEqual([during.status, during.conversations.total], ['ok', before.conversations.total + 1])
    assert.equal(during.conversations.active, before.conversations.active + 1)
    assert.doesNotMatch(JSON.stringify(during), /\//)
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })
    await until('no session to be active', async () => {
      const { body } = await server.call('GET', '/health')
      return body.conversations.active === before.conversations.active ? true : undefined
    })
  })
})
