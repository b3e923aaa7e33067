import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRequest } from './model.ts'
import { openAiBaseUrl, toChatBody } from './openai-request.ts'

const request: ModelRequest = { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools: [] }
const body = (more: Partial<ModelRequest>, baseUrl = 'http://127.0.0.1/v1') =>
  JSON.parse(toChatBody({ ...request, ...more }, baseUrl)) as Record<string, unknown>

test('only what was asked for is sent', () => {
  assert.deepEqual(body({}), {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
  })
})

test('the limit of tokens has the name that the server knows', () => {
  assert.equal(body({ maxTokens: 5 })['max_tokens'], 5)
  assert.equal(body({ maxTokens: 5 }, openAiBaseUrl)['max_completion_tokens'], 5)
  assert.equal('max_tokens' in body({ maxTokens: 5 }, openAiBaseUrl), false)
})

test('an answer that only called tools has no text, not an empty one', () => {
  const { messages } = body({
    messages: [
      { role: 'assistant', content: '', toolCalls: [{ callId: 'c', name: 'add', input: { a: 1 } }] },
      { role: 'assistant', content: '' },
      { role: 'tool', callId: 'c', name: 'add', content: 'no', isError: true },
    ],
  })

  assert.deepEqual(messages, [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
    },
    { role: 'assistant', content: '' },
    { role: 'tool', tool_call_id: 'c', content: 'no' },
  ])
})

test('a wanted answer uses the mode of the provider only if the model has one and the schema is simple', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }

  assert.deepEqual(body({ answer: { schema, native: true } })['response_format'], {
    type: 'json_schema',
    json_schema: { name: 'answer', schema, strict: true },
  })
  assert.equal('response_format' in body({ answer: { schema, native: false } }), false)
  assert.equal('response_format' in body({ answer: { schema: { type: 'array' }, native: true } }), false)
})

test('options of openai become fields of the request, but none that the request itself decides', () => {
  const body = JSON.parse(
    toChatBody(
      {
        model: 'm',
        messages: [],
        tools: [],
        providerOptions: { openai: { reasoningEffort: 'low', service_tier: 'flex', model: 'other' }, google: { a: 1 } },
      },
      'http://host/v1',
    ),
  ) as Record<string, unknown>

  assert.equal(body['reasoning_effort'], 'low')
  assert.equal(body['service_tier'], 'flex')
  assert.equal(body['model'], 'm')
  assert.equal('a' in body, false)
})
