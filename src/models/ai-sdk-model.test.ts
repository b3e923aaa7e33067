// What the adapter makes of a model that behaves badly. The same over a real
// socket, with real adapters, is in test/models/clients.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { APICallError, UnsupportedFunctionalityError } from '@ai-sdk/provider'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { AppError } from '../errors/app-error.ts'
import { createAiSdkModel } from './ai-sdk-model.ts'
import type { ModelPart, ModelRequest } from './model.ts'

const tokens = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 1, reasoning: 4 },
}
const finish = (
  unified: 'stop' | 'length' | 'interrupted' | 'other' | 'error',
  raw?: string,
): LanguageModelV4StreamPart => ({
  type: 'finish',
  usage: tokens,
  finishReason: { unified, raw },
})
const text = (delta: string): LanguageModelV4StreamPart => ({ type: 'text-delta', id: '1', delta })

async function run(parts: LanguageModelV4StreamPart[] | Error, request: Partial<ModelRequest> = {}) {
  let asked: LanguageModelV4CallOptions | undefined
  const fake = {
    provider: 'anthropic.messages',
    async doStream(options: LanguageModelV4CallOptions) {
      asked = options
      if (parts instanceof Error) throw parts
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part)
            controller.close()
          },
        }),
      }
    },
  } as unknown as LanguageModelV4
  const model = createAiSdkModel({
    identity: { provider: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY', secrets: ['the-key'] },
    load: async () => fake,
    ids: () => 'new',
    clock: manualClock(),
  })
  const came: ModelPart[] = []
  let error: AppError | undefined
  try {
    const whole = { model: 'm', messages: [], tools: [], ...request }
    for await (const some of model.stream(whole, new AbortController().signal)) came.push(...some)
  } catch (thrown) {
    error = thrown as AppError
  }
  return { came, error, asked }
}

test('parts are translated, tool calls wait for the finish', async () => {
  const { came, error } = await run([
    { type: 'stream-start', warnings: [] },
    { type: 'reasoning-delta', id: '0', delta: 'hm' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'add', input: '{"a":1}' },
    text('so'),
    finish('stop', 'end_turn'),
  ])

  assert.equal(error, undefined)
  assert.deepEqual(came, [
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'so' },
    { type: 'tool-call', callId: 'c1', name: 'add', rawInput: '{"a":1}', input: { a: 1 } },
    { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 3, outputTokens: 5, reasoningTokens: 4 } },
  ])
})

test('a call that the token limit cut off before its arguments has none, whatever the adapter writes for them', async () => {
  const { came } = await run([
    { type: 'tool-input-start', id: 'c1', toolName: 'list' },
    { type: 'tool-input-delta', id: 'c1', delta: '{}' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'list', input: '{}' },
    { type: 'tool-input-start', id: 'c2', toolName: 'remove' },
    { type: 'tool-input-delta', id: 'c2', delta: '' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'remove', input: '{}' },
    finish('length', 'max_tokens'),
  ])

  assert.deepEqual(came.slice(0, 2), [
    { type: 'tool-call', callId: 'c1', name: 'list', rawInput: '{}', input: {} },
    { type: 'tool-call', callId: 'c2', name: 'remove', rawInput: '' },
  ])
})

test('a finish that the provider never gave is not a finish', async () => {
  for (const end of [[], [finish('interrupted')], [finish('interrupted', 'x')], [finish('other')], [finish('error')]]) {
    const { came, error } = await run([text('half'), ...end])

    const spent = end.map(() => ({ type: 'spent', usage: { inputTokens: 3, outputTokens: 5, reasoningTokens: 4 } }))
    assert.deepEqual(came, [{ type: 'text', text: 'half' }, ...spent])
    assert.equal(error?.code, 'model_stream_incomplete')
    assert.equal(error?.retryable, true)
  }
})

test('a finish for another reason of the provider is one', async () => {
  assert.deepEqual((await run([finish('other', 'pause_turn')])).came.at(-1)?.type, 'finish')
})

test('a tool that the provider ran itself is not asked of us', async () => {
  const { came } = await run([
    { type: 'tool-call', toolCallId: 'c1', toolName: 'web_search', input: '{"query":"x"}', providerExecuted: true },
    { type: 'tool-result', toolCallId: 'c1', toolName: 'web_search', result: ['half'], preliminary: true },
    { type: 'tool-result', toolCallId: 'c1', toolName: 'web_search', result: ['page'] },
    { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.example/', title: 'A' },
    { type: 'source', sourceType: 'document', id: 's2', mediaType: 'application/pdf', title: 'B' },
    finish('stop', 'end_turn'),
  ])

  assert.deepEqual(came.slice(0, -1), [
    { type: 'provider-call', callId: 'c1', name: 'web_search', input: { query: 'x' } },
    { type: 'provider-result', callId: 'c1', output: ['page'], isError: false },
    { type: 'source', url: 'https://a.example/', title: 'A' },
    { type: 'source', title: 'B', mediaType: 'application/pdf' },
  ])
  assert.deepEqual(came.at(-1)?.type, 'finish')
})

test('a refused key names the variable of its provider', async () => {
  const refused = new APICallError({
    message: 'bad the-key',
    url: '',
    requestBodyValues: {},
    statusCode: 401,
    responseBody: 'bad the-key',
  })

  const { error } = await run(refused)

  assert.equal(error?.code, 'model_auth_failed')
  assert.match(error?.message ?? '', /ANTHROPIC_API_KEY/)
  assert.doesNotMatch(error?.message ?? '', /the-key/)
})

test('the results of calls that were made at once go in one message', async () => {
  const { asked } = await run([finish('stop', 'end_turn')], {
    messages: [
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { callId: 'a', name: 'add', input: { n: 1 } },
          { callId: 'b', name: 'add', input: { n: 2 } },
        ],
      },
      { role: 'tool', callId: 'a', name: 'add', content: '1', isError: false },
      { role: 'tool', callId: 'b', name: 'add', content: 'no', isError: true },
    ],
  })

  assert.deepEqual(
    asked?.prompt.map((message) => message.role),
    ['assistant', 'tool'],
  )
  assert.deepEqual(asked?.prompt[1]?.content, [
    { type: 'tool-result', toolCallId: 'a', toolName: 'add', output: { type: 'text', value: '1' } },
    { type: 'tool-result', toolCallId: 'b', toolName: 'add', output: { type: 'error-text', value: 'no' } },
  ])
})

test('an adapter that refuses the request itself is not unreachable, and the request is not retried', async () => {
  const refusals = [
    new UnsupportedFunctionalityError({ functionality: 'media type: video/x-none, with the-key' }),
    new Error('invalid anthropic provider options', { cause: new Error('effort must be a text') }),
  ]
  for (const refusal of refusals) {
    const { error } = await run(refusal)

    assert.equal(error?.code, 'model_error')
    assert.equal(error?.retryable, false)
    assert.match(error?.message ?? '', /cannot be sent to anthropic\..*(?:video\/x-none|effort must be a text)/)
    assert.doesNotMatch(error?.message ?? '', /the-key/)
  }
})

for (const failure of [new TypeError('fetch failed'), Object.assign(new Error('reset'), { code: 'ECONNRESET' })]) {
  test(`a connection that fails with ${failure.message} is retried`, async () => {
    const { error } = await run(failure)

    assert.equal(error?.code, 'model_unavailable')
    assert.equal(error?.retryable, true)
  })
}

test('options of the request reach the provider, above those of the client', async () => {
  const { asked } = await run([finish('stop', 'end_turn')], {
    providerOptions: { anthropic: { effort: 'high' }, openai: { reasoningEffort: 'low' } },
  })

  assert.deepEqual(asked?.providerOptions, { anthropic: { effort: 'high' }, openai: { reasoningEffort: 'low' } })
})
