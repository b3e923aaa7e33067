import assert from 'node:assert/strict'
import { test } from 'node:test'
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
