import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { toCallOptions } from './ai-sdk-request.ts'
import type { WantedAnswer } from './model.ts'

const optionsFor = (answer: WantedAnswer) =>
  toCallOptions(
    { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools: [], answer },
    new AbortController().signal,
  )

test('a wanted answer uses the adapter’s mode for structured output, strict only if the schema allows it', () => {
  const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const open = { type: 'object', properties: { a: { type: 'string' } } }

  const strict = optionsFor({ schema: closed, native: true })
  assert.deepEqual(strict.responseFormat, { type: 'json', name: 'answer', schema: closed })
  assert.deepEqual(strict.providerOptions, { openai: { strictJsonSchema: true } })
  assert.deepEqual(optionsFor({ schema: open, native: true }).providerOptions, { openai: { strictJsonSchema: false } })
})

test('without that mode, or with a schema that a provider may refuse, the prompt alone states the schema', () => {
  assert.equal(optionsFor({ schema: { type: 'object', properties: {} }, native: true }).responseFormat, undefined)
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  assert.equal(optionsFor({ schema, native: false }).responseFormat, undefined)
  assert.equal(optionsFor({ schema }).responseFormat, undefined)
})

test('settings of the sampling and the forced tool have the names of the interface', () => {
  const tools = [{ name: 'weather', description: '', inputSchema: { type: 'object' } }]
  const sampling = { topP: 0.5, stop: ['END'], seed: 7, presencePenalty: 0.25, frequencyPenalty: -0.5 }
  const asked = { model: 'm', messages: [], tools, sampling }
  const options = toCallOptions({ ...asked, toolChoice: { tool: 'weather' } }, new AbortController().signal)

  assert.deepEqual(
    [options.topP, options.stopSequences, options.seed, options.presencePenalty, options.frequencyPenalty],
    [0.5, ['END'], 7, 0.25, -0.5],
  )
  assert.deepEqual(options.toolChoice, { type: 'tool', toolName: 'weather' })
  const { toolChoice } = toCallOptions({ ...asked, toolChoice: 'required' }, new AbortController().signal)
  assert.deepEqual(toolChoice, { type: 'required' })
})

test('settings of the sampling in the options of the provider are sent as settings, and wrong ones are refused', () => {
  const withOptions = (anthropic: Record<string, JsonValue>) =>
    toCallOptions(
      { model: 'm', messages: [], tools: [], providerOptions: { anthropic, openai: { topP: 1 } } },
      new AbortController().signal,
      { provider: 'anthropic' },
    )
  const options = withOptions({ top_p: 0.5, topK: 4, stop: 'END', effort: 'low' })

  assert.deepEqual([options.topP, options.topK, options.stopSequences], [0.5, 4, ['END']])
  assert.deepEqual(options.providerOptions, { anthropic: { effort: 'low' }, openai: { topP: 1 } })
  assert.throws(() => withOptions({ topP: 'much' }), { code: 'model_error', message: /anthropic.*topP/ })
})

test('a tool that is strict is so for the adapter, and others leave it to the provider', () => {
  const tools = [
    { name: 'exact', description: '', inputSchema: { type: 'object' }, strict: true },
    { name: 'free', description: '', inputSchema: { type: 'object' } },
  ]
  const options = toCallOptions({ model: 'm', messages: [], tools }, new AbortController().signal)
  assert.deepEqual(
    options.tools?.map((tool) => tool.type === 'function' && tool.strict),
    [true, undefined],
  )
})
