import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import type { Models } from './model.ts'
import { createModels } from './providers.ts'
import type { ModelsOptions } from './provider-table.ts'

function models(options: Partial<ModelsOptions> = {}): Models {
  return createModels({ ids: () => 'id', clock: manualClock(), ...options })
}

test('without any provider the demo model is the default', () => {
  assert.equal(models().defaultModel, 'demo/demo')
  assert.equal(models({ openaiApiKey: '', openaiBaseUrl: ' ', ollamaBaseUrl: null }).defaultModel, 'demo/demo')
})

test('the first provider that is configured is the default', () => {
  const all = { openaiApiKey: 'k', anthropicApiKey: 'k', googleApiKey: 'k', ollamaBaseUrl: 'http://127.0.0.1:11434' }

  assert.match(models(all).defaultModel, /^openai\/./)
  assert.match(models({ ...all, openaiApiKey: null }).defaultModel, /^anthropic\/./)
  assert.match(models({ ...all, openaiApiKey: null, anthropicApiKey: null }).defaultModel, /^google\/./)
  assert.match(models({ ollamaBaseUrl: 'http://127.0.0.1:11434' }).defaultModel, /^ollama\/./)
})

test('a compatible server needs an address and no key', () => {
  assert.match(models({ openaiBaseUrl: 'http://127.0.0.1:8000/v1' }).defaultModel, /^openai\/./)
})

test('POLYLOG_MODEL wins over the order of providers', () => {
  assert.equal(
    models({ model: 'anthropic/claude-x', openaiApiKey: 'k', anthropicApiKey: 'k' }).defaultModel,
    'anthropic/claude-x',
  )
  assert.equal(models({ model: 'gpt-x', openaiApiKey: 'k' }).defaultModel, 'openai/gpt-x')
  assert.equal(
    models({ model: 'meta-llama/Llama-3', openaiBaseUrl: 'http://127.0.0.1:1/v1' }).defaultModel,
    'openai/meta-llama/Llama-3',
  )
})

test('a POLYLOG_MODEL that cannot be used is said at start', () => {
  assert.throws(() => models({ model: 'openai/gpt-x' }), {
    code: 'config_invalid',
    message: /POLYLOG_MODEL.*OPENAI_API_KEY/,
  })
  assert.throws(() => models({ model: 'nobody/x' }), { code: 'config_invalid', message: /anthropic/ })
})

test('an address that is none is said at start, without repeating it', () => {
  assert.throws(
    () => models({ openaiBaseUrl: 'user:secret@host' }),
    (error: Error) => {
      assert.match(error.message, /OPENAI_BASE_URL/)
      assert.doesNotMatch(error.message, /secret/)
      return true
    },
  )
})

test('a request without a model gets the default', () => {
  const some = models({ openaiApiKey: 'k', model: 'openai/gpt-x' })

  assert.equal(some.resolve(undefined), 'openai/gpt-x')
  assert.equal(some.resolve('  '), 'openai/gpt-x')
})

test('a name without a slash belongs to the default provider', () => {
  assert.equal(models({ anthropicApiKey: 'k' }).resolve('claude-x'), 'anthropic/claude-x')
  assert.equal(models().resolve('demo'), 'demo/demo')
})

test('a well-known name without a slash belongs to its own provider, or is refused with the variable to set', () => {
  const both = models({ openaiApiKey: 'k', anthropicApiKey: 'k' })
  assert.equal(both.resolve('claude-x'), 'anthropic/claude-x')
  assert.equal(both.resolve('gpt-x'), 'openai/gpt-x')
  assert.equal(both.resolve('unheard-of'), 'openai/unheard-of')
  assert.throws(() => models({ anthropicApiKey: 'k' }).resolve('gpt-x'), {
    code: 'unknown_model',
    message: /OPENAI_API_KEY/,
  })
  assert.throws(() => both.resolve('gemini-x'), { code: 'unknown_model', message: /GOOGLE_GENERATIVE_AI_API_KEY/ })
  // A compatible server may have any model.
  const compatible = models({ openaiBaseUrl: 'http://127.0.0.1:1/v1', anthropicApiKey: 'k' })
  assert.equal(compatible.resolve('claude-x'), 'openai/claude-x')
})

test('a name with a slash of its own is a model of an OpenAI-compatible default', () => {
  const compatible = models({ openaiBaseUrl: 'http://127.0.0.1:1/v1' })

  assert.equal(compatible.resolve('meta-llama/Llama-3'), 'openai/meta-llama/Llama-3')
  assert.equal(compatible.resolve('openai/meta-llama/Llama-3'), 'openai/meta-llama/Llama-3')
})

test('an unknown provider is refused with the names of the known ones', () => {
  assert.throws(() => models({ anthropicApiKey: 'k' }).resolve('meta-llama/Llama-3'), {
    code: 'unknown_model',
    message: /providers are openai, anthropic, google, ollama\./,
  })
  assert.throws(() => models().resolve('demo/'), { code: 'unknown_model' })
})

test('a provider without its key is refused with the variable to set', () => {
  const some = models({ openaiApiKey: 'k' })

  assert.throws(() => some.resolve('anthropic/claude-x'), { code: 'unknown_model', message: /ANTHROPIC_API_KEY/ })
  assert.throws(() => some.resolve('google/gemini-x'), {
    code: 'unknown_model',
    message: /GOOGLE_GENERATIVE_AI_API_KEY/,
  })
  assert.throws(() => some.resolve('ollama/llama'), { code: 'unknown_model', message: /OLLAMA_BASE_URL/ })
  assert.throws(() => models().open('openai/gpt-x'), { code: 'unknown_model', message: /OPENAI_API_KEY/ })
})

test('without a provider a model name is never taken for the demo model', () => {
  const wrong: [model: string, variable: RegExp][] = [
    ['gpt-5', /OPENAI_API_KEY/],
    ['claude-x', /ANTHROPIC_API_KEY/],
    ['gemini-x', /GOOGLE_GENERATIVE_AI_API_KEY/],
    ['some-model', /OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY/],
  ]
  for (const [model, variable] of wrong) {
    assert.throws(() => models({ model }), { code: 'config_invalid', message: variable }, model)
    assert.throws(() => models().resolve(model), { code: 'unknown_model', message: variable }, model)
  }
  assert.throws(() => models().resolve('demo/gpt-5'), { code: 'unknown_model', message: /demo\/demo/ })
})

test('the demo model is there while no provider is configured, or when it is asked for', () => {
  const listed = (options: Partial<ModelsOptions>) =>
    models(options)
      .list()
      .some(({ provider }) => provider === 'demo')

  assert.equal(listed({}), true)
  assert.equal(listed({ openaiApiKey: 'k' }), false)
  assert.equal(listed({ openaiApiKey: 'k', demo: 'on' }), true)
  assert.equal(listed({ openaiApiKey: 'k', demo: 'off' }), false)
  assert.equal(models({ openaiApiKey: 'k', model: 'demo/demo' }).defaultModel, 'demo/demo')
})

test('a demo model that is off is refused like any provider that is not configured', () => {
  const off = models({ openaiApiKey: 'k' })

  assert.throws(() => off.resolve('demo/demo'), { code: 'unknown_model', message: /POLYLOG_DEMO/ })
  assert.throws(() => off.open('demo/demo'), { code: 'unknown_model', message: /POLYLOG_DEMO/ })
  assert.throws(() => models({ openaiApiKey: 'k', demo: 'off', model: 'demo/demo' }), {
    code: 'config_invalid',
    message: /POLYLOG_MODEL.*POLYLOG_DEMO/,
  })
  assert.throws(() => models({ demo: 'off' }), { code: 'config_invalid', message: /OPENAI_API_KEY.*POLYLOG_DEMO=on/ })
})

test('a model name is refused for every provider when it could leave the path of an API', () => {
  const all = models({
    openaiApiKey: 'k',
    anthropicApiKey: 'k',
    googleApiKey: 'k',
    ollamaBaseUrl: 'http://127.0.0.1:11434',
  })
  const hostile = [
    'a/../../../../admin#',
    '..',
    '.',
    'a/./b',
    'a//b',
    'a#b',
    'a?key=1',
    'a%2e%2e',
    'a\\b',
    'a b',
    'a\nb',
    'a\u0000',
    'a'.repeat(300),
  ]
  for (const provider of ['openai', 'anthropic', 'google', 'ollama']) {
    for (const name of hostile) {
      assert.throws(() => all.resolve(`${provider}/${name}`), { code: 'unknown_model' }, `${provider}/${name}`)
      assert.throws(() => all.open(`${provider}/${name}`), { code: 'unknown_model' }, `${provider}/${name}`)
    }
  }
  for (const name of ['anthropic/a/b', 'google/a/b', 'google/files/b', 'google/models/a/b']) {
    assert.throws(() => all.resolve(name), { code: 'unknown_model' }, name)
  }
})

test('the names that real models have are accepted', () => {
  const all = models({
    openaiApiKey: 'k',
    anthropicApiKey: 'k',
    googleApiKey: 'k',
    ollamaBaseUrl: 'http://127.0.0.1:11434',
  })
  const real = [
    'openai/gpt-5.4-mini',
    'openai/ft:gpt-4o-mini-2024-07-18:org::Abc123',
    'openai/meta-llama/Llama-3.3-70B-Instruct:free',
    'openai/@cf/meta/llama-3',
    'openai//srv/models/llama',
    'openai/通义千问',
    'anthropic/claude-sonnet-5@20260101',
    'google/models/gemini-x',
    'google/tunedModels/mine-1',
    'ollama/hf.co/someone/Model-GGUF:Q4_K_M',
  ]
  for (const name of real) assert.equal(all.resolve(name), name)
})

test('every provider that is ready can be opened, each once', () => {
  const all = models({
    openaiApiKey: 'k',
    anthropicApiKey: 'k',
    googleApiKey: 'k',
    ollamaBaseUrl: 'http://127.0.0.1:11434/v1/',
  })

  for (const { provider, ready } of all.list()) {
    assert.equal(ready, true, provider)
    assert.equal(all.open(`${provider}/a`), all.open(`${provider}/b`))
  }
})

test('the list says what is missing', () => {
  const listed = models().list()

  assert.deepEqual(
    listed.map(({ provider, ready }) => [provider, ready]),
    [
      ['openai', false],
      ['anthropic', false],
      ['google', false],
      ['ollama', false],
      ['demo', true],
    ],
  )
  assert.match(listed[1]?.reason ?? '', /ANTHROPIC_API_KEY/)
})

for (const [settings, url] of [
  [{}, 'https://api.openai.com/v1/responses'],
  [{ openaiBaseUrl: 'https://api.openai.com/v1/' }, 'https://api.openai.com/v1/responses'],
  [{ openaiBaseUrl: 'http://host/v1', openaiApi: 'responses' }, 'http://host/v1/responses'],
  [{ openaiApi: 'chat', openaiClient: 'ai-sdk' }, 'https://api.openai.com/v1/chat/completions'],
  [{ openaiBaseUrl: 'http://host/v1', openaiClient: 'ai-sdk' }, 'http://host/v1/chat/completions'],
] as const) {
  test(`openai is asked at ${url} with ${JSON.stringify(settings)}`, async () => {
    const asked: unknown[] = []
    const fetch: ModelsOptions['fetch'] = (given, init) => {
      asked.push(given)
      if (url.endsWith('/responses'))
        assert.equal((JSON.parse(init?.body as string) as { store?: boolean }).store, false)
      return Promise.resolve(new Response('{}', { status: 500 }))
    }
    const model = models({ openaiApiKey: 'k', fetch, ...settings }).open('openai/gpt-5')
    const request = { model: 'gpt-5', messages: [{ role: 'user' as const, content: 'Hi' }], tools: [] }

    await assert.rejects(model.stream(request, new AbortController().signal)[Symbol.asyncIterator]().next(), {
      code: 'model_unavailable',
    })

    assert.deepEqual(asked, [url])
  })
}
