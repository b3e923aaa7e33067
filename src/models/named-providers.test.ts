// Named endpoints: what a configuration may say, which variable a missing key names, and what a
// request that uses one looks like.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type FakeProvider, startFakeProvider } from '../../test/support/fake-provider.ts'
import { systemClock } from '../kit/clock.ts'
import { AppError } from '../errors/app-error.ts'
import type { ModelPart, Models } from './model.ts'
import { parseNamedProviders, parseNamedProvidersText } from './named-providers.ts'
import { createModels } from './providers.ts'

let provider: FakeProvider
before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

const key = 'sk-named-0123456789'

function modelsWith(config: Record<string, unknown>, environment: Record<string, string> = {}, model?: string): Models {
  const named = parseNamedProviders(config, 'providers')
  return createModels({ named, environment, model, ids: () => 'id', clock: systemClock })
}

async function ask(models: Models, name: string, providerOptions = {}): Promise<ModelPart[] | AppError> {
  const parts: ModelPart[] = []
  const request = { model: name.slice(name.indexOf('/') + 1), messages: [], tools: [], providerOptions }
  try {
    for await (const some of models.open(name).stream(request, new AbortController().signal)) parts.push(...some)
    return parts
  } catch (error) {
    assert.ok(error instanceof AppError)
    return error
  }
}

test('a named endpoint is asked with its own key, headers and options', async () => {
  const models = modelsWith(
    { deep: { baseURL: `${provider.baseUrl}/`, apiKeyEnv: 'DEEP_KEY', headers: { 'x-team': 'walks' } } },
    { DEEP_KEY: key },
    'deep/some/model-1',
  )
  await provider.script([[{ text: 'Hello.' }, { finish: 'stop' }]])

  const parts = await ask(models, 'deep/some/model-1', { deep: { topK: 3 }, openai: { topK: 9 } })

  assert.equal(models.defaultModel, 'deep/some/model-1')
  assert.ok(Array.isArray(parts))
  const [seen] = await provider.requests()
  assert.deepEqual(
    [seen?.body.model, seen?.headers['x-team'], seen?.hasAuthorization, seen?.body['top_k']],
    ['some/model-1', 'walks', true, 3],
  )
})

test('a missing key names its variable, in the list and in a request', () => {
  const config = {
    deep: { baseURL: 'https://deep.example/v1', apiKeyEnv: 'DEEP_KEY', headers: { 'x-org': { env: 'DEEP_ORG' } } },
  }
  const models = modelsWith(config, { DEEP_KEY: ' ' })

  const listed = models.list().find((one) => one.provider === 'deep')
  assert.deepEqual(listed, {
    provider: 'deep',
    ready: false,
    reason: 'set DEEP_KEY and DEEP_ORG, which deep.example needs.',
  })
  assert.throws(() => models.resolve('deep/x'), { code: 'unknown_model', message: /set DEEP_KEY and DEEP_ORG/ })
  assert.equal(models.defaultModel, 'demo/demo')
})

test('neither the key nor a secret header is ever shown', async () => {
  const environment = { DEEP_KEY: key, DEEP_ORG: 'org-secret-1' }
  const models = modelsWith(
    {
      deep: {
        baseURL: provider.baseUrl,
        apiKeyEnv: 'DEEP_KEY',
        headers: { 'x-org': { env: 'DEEP_ORG' } },
        models: ['m'],
      },
    },
    environment,
  )
  await provider.script([
    [{ status: 400, body: { error: { message: `bad ${key} of org-secret-1` } } }],
    [{ status: 401, body: { error: { message: `no ${key}` } } }],
  ])

  const refused = await ask(models, 'deep/m')
  assert.match(String(refused), /deep refused the request \(400\)\. It said: bad \[key\] of \[key\]/)
  const unauthorised = await ask(models, 'deep/m')
  assert.match(String(unauthorised), /deep refused the credentials \(401\)\. Check DEEP_KEY\./)
})

test('the listed models are listed, and the first is the default', () => {
  const models = modelsWith({
    deep: { baseURL: 'http://127.0.0.1:1/v1', models: { b: { contextTokens: 1000 }, a: {} } },
  })

  assert.deepEqual(models.listed(), ['deep/b', 'deep/a'])
  assert.equal(models.defaultModel, 'deep/b')
  assert.equal(models.resolve('deep/another'), 'deep/another')
  assert.throws(() => modelsWith({ deep: { baseURL: 'http://127.0.0.1:1/v1' } }), {
    code: 'config_invalid',
    message: /set POLYLOG_MODEL to deep\/ and the name of a model/,
  })
})

const wrong: [what: string, config: unknown, message: RegExp][] = [
  ['a name of the server', { openai: { baseURL: 'http://x/v1' } }, /"openai" .* choose another one/],
  ['a strange name', { 'Deep Seek': { baseURL: 'http://x/v1' } }, /"Deep Seek" .* lower-case letters/],
  ['no address', { deep: {} }, /"deep" .* baseURL/],
  ['a password in the address', { deep: { baseURL: 'http://a:hunter2@x/v1' } }, /use apiKeyEnv/],
  ['a key instead of its variable', { deep: { baseURL: 'http://x/v1', apiKey: 'sk-1' } }, /apiKey/],
  ['a key in place of a variable', { deep: { baseURL: 'http://x/v1', apiKeyEnv: 'sk-1-2' } }, /environment variable/],
  ['a header of ours', { deep: { baseURL: 'http://x/v1', headers: { Host: 'y' } } }, /sets itself/],
  [
    'two of one name',
    [
      { name: 'd', baseURL: 'http://x' },
      { name: 'd', baseURL: 'http://x' },
    ],
    /two providers called "d"/,
  ],
  ['a text', 'deep', /a list of providers/],
  ['a model that cannot be', { deep: { baseURL: 'http://x/v1', models: ['a b'] } }, /no model can have/],
]
for (const [what, config, message] of wrong) {
  test(`a configuration with ${what} is refused, and says why`, () => {
    assert.throws(
      () => parseNamedProviders(config, 'POLYLOG_PROVIDERS'),
      (error: AppError) => {
        assert.equal(error.code, 'config_invalid')
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /hunter2|sk-1/)
        return true
      },
    )
  })
}

test('a text that is no JSON is not shown', () => {
  assert.throws(() => parseNamedProvidersText('{"deep": sk-secret', 'POLYLOG_PROVIDERS'), {
    message: 'POLYLOG_PROVIDERS is not valid JSON.',
  })
})
