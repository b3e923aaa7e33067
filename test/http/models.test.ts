// Which models a server has: what stops a start, what a request may name, and that a hostile
// message to the demo model does not affect other requests.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { callServer, endOf, someone, sharedTestServer } from '../support/test-server.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { openStream } from '../support/sse.ts'

describe('a start', () => {
  for (const [model, variable] of [
    ['gpt-5', /OPENAI_API_KEY/],
    ['openai/gpt-5', /OPENAI_API_KEY/],
    ['anthropic/claude-x', /ANTHROPIC_API_KEY/],
    ['demo/gpt-5', /demo\/demo/],
  ] as const) {
    test(`is refused with POLYLOG_MODEL=${model} and no key, and says what to set`, async () => {
      await assert.rejects(startPolylog({ POLYLOG_MODEL: model }), (error: Error) => {
        assert.match(error.message, /POLYLOG_MODEL/)
        assert.match(error.message, variable)
        return true
      })
    })
  }
})

describe('a server with a provider', () => {
  const server = sharedTestServer({ GOOGLE_GENERATIVE_AI_API_KEY: 'k' })

  const ask = (model: string) =>
    server.call('POST', '/v1/agent/chat', { user: 'model-names', body: { input: 'hi', model } })

  test('does not offer the demo model', async () => {
    const models = await server.call('GET', '/v1/providers')
    const refused = await ask('demo/demo')

    assert.equal(models.status, 200)
    assert.doesNotMatch(models.text, /demo/)
    assert.equal(refused.status, 400)
    assert.equal(refused.body.code, 'unknown_model')
    assert.match(String(refused.body.message), /POLYLOG_DEMO/)
  })

  test('fails a run whose provider reports an error in the middle of its stream, and keeps what was said', async () => {
    const user = someone('reported')
    await server.provider.script(
      [[{ text: 'So far so good.' }, { error: { message: 'The engine is on fire' } }, { finish: 'stop' }]],
      user,
    )

    const frames = await server.chatToEnd(user, user)

    assert.equal(endOf(frames).status, 'failed')
    assert.match(JSON.stringify(endOf(frames)), /model_error/)
    assert.match(JSON.stringify(frames), /So far so good/)
  })

  test('fails a run whose provider sends it elsewhere, and does not go there', async () => {
    const user = someone('redirected')
    const headers = { location: `${server.provider.baseUrl}/chat/completions` }
    await server.provider.script([[{ status: 307, headers }]], user)

    const frames = await server.chatToEnd(user, user)

    assert.equal(endOf(frames).status, 'failed')
    assert.equal((await server.asked(user)).length, 1)
  })

  test('refuses a provider without its key, and names the variable', async () => {
    const refused = await ask('anthropic/claude-x')

    assert.equal(refused.status, 400)
    assert.match(String(refused.body.message), /ANTHROPIC_API_KEY/)
  })

  test('refuses a model name that could leave the path of the provider, before a run is accepted', async () => {
    for (const model of ['google/a/../../../../admin#', 'google/..', 'openai/x?y', 'openai/a\nb']) {
      const refused = await ask(model)

      assert.equal(refused.status, 400, model)
      assert.equal(refused.body.code, 'unknown_model', model)
      assert.equal(refused.headers.get('x-run-id'), null)
    }
  })
})

describe('a server with the demo model only', () => {
  let polylog: Polylog
  before(async () => {
    polylog = await startPolylog()
  })
  after(() => polylog.dispose())

  test('answers a megabyte of braces, and others meanwhile', async () => {
    const input = `use the tool current_time with {${'"}'.repeat(500_000)}`
    const body = { userId: 'braces', input }
    const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, { method: 'POST', body })

    const health = await callServer(polylog.baseUrl, 'GET', '/v1/health')
    await stream.ended()

    assert.equal(health.status, 200)
    assert.equal(endOf(stream.frames).status, 'succeeded')
  })
})
