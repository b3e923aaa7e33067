// GET /v1/models.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Json, sharedTestServer, startTestServer } from '../support/test-server.ts'

const server = sharedTestServer({ POLYLOG_MODEL: 'openai/gpt-4o-2024-08-06' })

test('the models of configured providers and the agents are listed, in the shape of the OpenAI API', async () => {
  const { status, body } = await server.call('GET', '/v1/models')
  const models = body.data as Json[]
  const byId = new Map(models.map((model) => [model.id as string, model]))

  assert.deepEqual([status, body.object], [200, 'list'])
  for (const model of models) assert.deepEqual([model.object, typeof model.created], ['model', 'number'])
  assert.deepEqual(
    models
      .filter(({ kind }) => kind === 'model')
      .map(({ owned_by }) => owned_by)
      .filter((one) => one !== 'openai'),
    [],
    'no models of providers without a key, and no demo model',
  )
  const mini = byId.get('openai/gpt-4o-mini')
  assert.deepEqual([mini?.contextTokens, mini?.abilities.vision, mini?.price.input], [128_000, true, 0.15])
  const [first] = models
  assert.deepEqual([first?.id, first?.isDefault, first?.contextTokens], ['openai/gpt-4o-2024-08-06', true, 128_000])
  const agent = byId.get('agent/chat_conversation')
  assert.deepEqual([agent?.kind, agent?.owned_by, agent?.model], ['agent', 'polylog', 'openai/gpt-4o-2024-08-06'])
  assert.equal(new Set(models.map(({ id }) => id)).size, models.length)
})

test('an agent is found by each name that a request may give it', async () => {
  for (const name of ['agent/chat_conversation', 'chat_conversation']) {
    const { status, body } = await server.call('GET', `/v1/models/${encodeURIComponent(name)}`)
    assert.deepEqual([status, body.id], [200, 'agent/chat_conversation'], name)
  }
  assert.equal((await server.call('GET', '/v1/models/nobody')).status, 404)
})

test('a default model that is not in the table is listed, with nothing known', async () => {
  const other = await startTestServer({ POLYLOG_MODEL: 'openai/unheard-of' })
  try {
    const [first] = (await other.call('GET', '/v1/models')).body.data as Json[]
    assert.deepEqual([first?.id, first?.contextTokens, first?.price], ['openai/unheard-of', null, null])
    assert.deepEqual(first?.abilities, { vision: null, pdf: null, reasoning: null, structuredOutput: null })
  } finally {
    await other.close()
  }
})
