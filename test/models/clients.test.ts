// Every client of the OpenAI wire must say the same about the same answer: one
// table of answers, over a real socket, against a provider in its own process.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { AppError } from '../../src/errors/app-error.ts'
import type { Model, ModelPart } from '../../src/models/model.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { Action, FakeProvider } from '../support/fake-provider.ts'
import { aiSdkCompatibleModel, aiSdkOpenAiModel, codeOf, hello, leanModel, readAll, secretKey, textOf } from './model-harness.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

type Case = {
  title: string
  answer: Action[]
  /** Absent: a failure before any part. */
  parts?: ModelPart[]
  code?: string
  retryable?: boolean
  message?: RegExp
  /** Why a client is left out. */
  leanOnly?: string
  notOpenAi?: string
}

const usage = { inputTokens: 11, outputTokens: 7 }
const text = (...texts: string[]): ModelPart[] => texts.map((one) => ({ type: 'text', text: one }))
const finish = (reason: 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other'): ModelPart => ({ type: 'finish', reason, usage })
const add = (callId: string, rawInput: string, input?: object): ModelPart =>
  ({ type: 'tool-call', callId, name: 'add', rawInput, ...(input === undefined ? {} : { input }) }) as ModelPart

const cases: Case[] = [
  {
    title: 'text comes chunk by chunk and ends with the usage',
    answer: [{ text: ['Hel', 'lo ', '世界 🌍'] }, { finish: 'stop' }],
    parts: [...text('Hel', 'lo ', '世界 🌍'), finish('stop')],
  },
  {
    title: 'reasoning is told from text',
    answer: [{ reasoning: ['I ', 'think'] }, { text: 'so' }, { finish: 'stop' }],
    parts: [{ type: 'reasoning', text: 'I ' }, { type: 'reasoning', text: 'think' }, ...text('so'), finish('stop')],
    notOpenAi: 'OpenAI itself does not send reasoning on this wire',
  },
  {
    title: 'reasoning under its other name is understood too',
    answer: [{ reasoning: 'hm', field: 'reasoning' }, { text: 'so' }, { finish: 'stop' }],
    parts: [{ type: 'reasoning', text: 'hm' }, ...text('so'), finish('stop')],
    notOpenAi: 'OpenAI itself does not send reasoning on this wire',
  },
  {
    title: 'the fragments of a tool call are joined',
    answer: [{ text: 'a' }, { toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a": 1, "b": "ü"}', pieces: 3 }] }, { finish: 'tool_calls' }],
    parts: [...text('a'), add('c1', '{"a": 1, "b": "ü"}', { a: 1, b: 'ü' }), finish('tool-calls')],
  },
  {
    title: 'parallel tool calls whose fragments are interleaved are kept apart',
    answer: [
      { toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a":11}', pieces: 2 }, { id: 'c2', name: 'add', arguments: '{"a":22}', pieces: 3 }] },
      { finish: 'tool_calls' },
    ],
    parts: [add('c1', '{"a":11}', { a: 11 }), add('c2', '{"a":22}', { a: 22 }), finish('tool-calls')],
  },
  {
    title: 'a tool call without arguments has none',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add', arguments: '' }] }, { finish: 'tool_calls' }],
    parts: [add('c1', '', {}), finish('tool-calls')],
  },
  {
    title: 'arguments that are not JSON are handed over as they came',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a": 1' }] }, { finish: 'tool_calls' }],
    parts: [add('c1', '{"a": 1'), finish('tool-calls')],
  },
  {
    title: 'arguments that the token limit may have cut off are not taken for none',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add', arguments: '' }] }, { finish: 'length' }],
    parts: [add('c1', ''), finish('length')],
  },
  {
    title: 'a server that says stop after a tool call means tool calls',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add' }] }, { finish: 'stop' }],
    parts: [add('c1', '{}', {}), finish('tool-calls')],
  },
  { title: 'the token limit is a finish', answer: [{ text: 'a' }, { finish: 'length' }], parts: [...text('a'), finish('length')] },
  {
    title: 'a filtered answer says so',
    answer: [{ text: 'a' }, { finish: 'content_filter' }],
    parts: [...text('a'), finish('content-filter')],
  },
  {
    title: 'an unheard-of finish reason is still a finish',
    answer: [{ text: 'a' }, { finish: 'eos_token_reached' }],
    parts: [...text('a'), finish('other')],
  },
  {
    title: 'after a finish reason a close without [DONE] is a good end',
    answer: [{ text: 'a' }, { finish: 'stop', done: false }],
    parts: [...text('a'), finish('stop')],
  },
  {
    title: 'a provider that counts no tokens gives no usage',
    answer: [{ text: 'a' }, { finish: 'stop', usage: false }],
    parts: [...text('a'), { type: 'finish', reason: 'stop' }],
  },
  {
    title: 'reasoning tokens are reported',
    answer: [
      { text: 'a' },
      { finish: 'stop', usage: { prompt_tokens: 1, completion_tokens: 9, total_tokens: 10, completion_tokens_details: { reasoning_tokens: 4 } } },
    ],
    parts: [...text('a'), { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 9, reasoningTokens: 4 } }],
  },

  // Ends that are none.
  {
    title: 'a stream that ends without a finish is incomplete',
    answer: [{ text: 'a' }, { end: true }],
    parts: text('a'),
    code: 'model_stream_incomplete',
    retryable: true,
  },
  { title: 'a stream that ends before it began is incomplete', answer: [{ end: true }], code: 'model_stream_incomplete', retryable: true },
  {
    title: 'a stream that is cut in the middle is incomplete',
    answer: [{ text: 'a' }, { cut: true }],
    parts: text('a'),
    code: 'model_stream_incomplete',
    retryable: true,
  },
  {
    title: 'a tool call is not handed over when the stream is cut after it',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a":1}' }] }, { cut: true }],
    code: 'model_stream_incomplete',
  },
  {
    title: 'a tool call is not handed over when the stream ends after it without a finish',
    answer: [{ toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a":1}' }] }, { end: true }],
    code: 'model_stream_incomplete',
  },
  {
    title: 'half a frame is not an answer',
    answer: [{ text: 'a' }, { halfJson: true }, { end: true }],
    parts: text('a'),
    code: 'model_stream_incomplete',
  },
  {
    title: 'half a frame is a failure even when a finish follows',
    answer: [{ text: 'a' }, { halfJson: true }, { finish: 'stop' }],
    parts: text('a'),
    code: 'model_stream_incomplete',
  },
  {
    title: 'an error in the middle of the stream is told in the words of the provider',
    answer: [{ text: 'a' }, { error: { message: 'The engine is on fire', type: 'server_error' } }, { end: true }],
    parts: text('a'),
    code: 'model_error',
    message: /The engine is on fire/,
  },

  // Statuses.
  {
    title: 'a rate limit may be retried and says when',
    answer: [{ status: 429, body: { error: { message: 'Slow down' } }, headers: { 'retry-after': '3' } }],
    code: 'model_rate_limited',
    retryable: true,
    message: /Slow down/,
  },
  {
    title: 'an empty account is not retried',
    answer: [{ status: 429, body: { error: { message: 'Pay first', code: 'insufficient_quota' } } }],
    code: 'model_rate_limited',
    retryable: false,
  },
  ...[401, 403].map((status): Case => ({
    title: `${status} names the variable that holds the key and never the key`,
    answer: [{ status, body: { error: { message: `Incorrect API key provided: ${secretKey}` } } }],
    code: 'model_auth_failed',
    retryable: false,
    message: /OPENAI_API_KEY/,
  })),
  ...[408, 500, 502, 503, 529].map((status): Case => ({
    title: `${status} may be retried`,
    answer: [{ status, body: { error: { message: 'busy' } } }],
    code: 'model_unavailable',
    retryable: true,
  })),
  ...[400, 404, 422].map((status): Case => ({
    title: `${status} is final and quotes the provider, but not its whole page and not the key`,
    answer: [{ status, body: { error: { message: `No such model. ${secretKey} ${'x'.repeat(5000)}` } } }],
    code: 'model_error',
    retryable: false,
    message: /It said: No such model\. \[key\] x{400,500}…$/,
  })),
  { title: 'an error page that is no JSON is quoted too', answer: [{ status: 500, body: '<h1>Bad</h1>' }], code: 'model_unavailable', message: /Bad/ },

  // What only our own client can see.
  {
    title: '[DONE] after some content counts as a stop',
    answer: [{ text: 'a' }, { done: true }, { end: true }],
    parts: [...text('a'), { type: 'finish', reason: 'stop' }],
    leanOnly: 'the AI SDK does not show [DONE]; it fails, which is safe',
  },
  { title: '[DONE] after nothing is incomplete', answer: [{ done: true }, { end: true }], code: 'model_stream_incomplete' },
  {
    title: 'a cut after the finish reason is a good end',
    answer: [{ text: 'a' }, { bytesBase64: [base64('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n')] }, { cut: true }],
    parts: [...text('a'), { type: 'finish', reason: 'stop' }],
    leanOnly: 'the AI SDK tells the finish only at the end; it fails, which is safe',
  },
  {
    title: 'an answer that is not streamed is understood',
    answer: [
      {
        json: {
          choices: [
            {
              message: { content: 'all at once', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }] },
              finish_reason: 'tool_calls',
            },
          ],
          usage: { prompt_tokens: 11, completion_tokens: 7 },
        },
      },
    ],
    parts: [...text('all at once'), add('c1', '{"a":1}', { a: 1 }), finish('tool-calls')],
    leanOnly: 'the AI SDK expects a stream; it fails, which is safe',
  },
  {
    title: 'an error in an answer that is not streamed is an error',
    answer: [{ json: { error: { message: 'No such deployment' } } }],
    code: 'model_error',
    message: /No such deployment/,
    leanOnly: 'the AI SDK expects a stream; it fails, which is safe',
  },
]

const clients: { name: string; create: (baseUrl: string) => Model; skips: (one: Case) => string | undefined }[] = [
  { name: 'our own client', create: (baseUrl) => leanModel(baseUrl), skips: () => undefined },
  { name: 'the AI SDK for compatible servers', create: aiSdkCompatibleModel, skips: (one) => one.leanOnly },
  { name: 'the AI SDK for OpenAI', create: aiSdkOpenAiModel, skips: (one) => one.leanOnly ?? one.notOpenAi },
]

for (const client of clients) {
  describe(client.name, () => {
    for (const one of cases) {
      const skip = client.skips(one)
      test(one.title, { ...(skip === undefined ? {} : { skip }) }, async () => {
        await provider.script([one.answer])

        const outcome = await readAll(client.create(provider.baseUrl))

        assert.equal(codeOf(outcome), one.code)
        assert.deepEqual(outcome.parts, one.parts ?? [])
        if (one.code === undefined) return
        const error = outcome.error as AppError
        if (one.retryable !== undefined) assert.equal(error.retryable, one.retryable)
        if (one.message !== undefined) assert.match(error.message, one.message)
        assert.doesNotMatch(JSON.stringify(error.toValue()), /sk-secret/)
        assert.equal((await provider.requests()).length, 1, 'a client does not retry by itself')
      })
    }

    test('a rate limit carries the time to wait', async () => {
      await provider.script([[{ status: 429, headers: { 'retry-after': '3' } }]])

      const { error } = await readAll(client.create(provider.baseUrl))

      assert.equal((error as AppError).details?.['retryAfterMs'], 3000)
    })

    test('ids that are missing or repeated become distinct ones', async () => {
      const call = { name: 'add', arguments: '{"a":1}' }
      await provider.script([
        [{ toolCalls: [{ ...call, id: 'same' }, { ...call, id: 'same' }, { ...call, id: null }] }, { finish: 'tool_calls' }],
      ])

      const { parts } = await readAll(client.create(provider.baseUrl))

      const ids = parts.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
      assert.equal(ids.length, 3)
      assert.equal(new Set(ids).size, 3)
      assert.equal(ids[0], 'same')
      assert.ok(ids.every((id) => id.length > 0))
    })

    test('an id that an earlier answer of the conversation used is replaced', async () => {
      await provider.script([[{ toolCalls: [{ id: 'call_0', name: 'add' }] }, { finish: 'tool_calls' }]])
      const request = {
        ...hello,
        messages: [
          ...hello.messages,
          { role: 'assistant' as const, content: '', toolCalls: [{ callId: 'call_0', name: 'add', input: {} }] },
          { role: 'tool' as const, callId: 'call_0', name: 'add', content: '1', isError: false },
        ],
      }

      const { parts } = await readAll(client.create(provider.baseUrl), request)

      assert.notEqual(parts.find((part) => part.type === 'tool-call')?.callId, 'call_0')
    })

    test('messages, tools and limits arrive at the provider', async () => {
      await readAll(client.create(provider.baseUrl), {
        model: 'vendor/fake',
        messages: [
          { role: 'system', content: 'Be brief' },
          { role: 'user', content: 'One plus one?' },
          { role: 'assistant', content: '', toolCalls: [{ callId: 'c1', name: 'add', input: { a: 1 } }] },
          { role: 'tool', callId: 'c1', name: 'add', content: '2', isError: false },
        ],
        tools: [{ name: 'add', description: 'Adds', inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }],
        temperature: 0.5,
        maxTokens: 64,
      })

      const [seen] = await provider.requests()
      const body = seen?.body as Record<string, any>
      assert.equal(seen?.path, '/v1/chat/completions')
      assert.equal(seen?.hasAuthorization, true)
      assert.equal(body['model'], 'vendor/fake')
      assert.equal(body['stream'], true)
      assert.deepEqual(body['stream_options'], { include_usage: true })
      assert.equal(body['temperature'], 0.5)
      assert.equal(body['max_tokens'], 64)
      assert.deepEqual(body['tools'][0].function.name, 'add')
      assert.deepEqual(body['tools'][0].function.parameters.properties, { a: { type: 'number' } })
      assert.deepEqual(
        body['messages'].map((message: any) => message.role),
        ['system', 'user', 'assistant', 'tool'],
      )
      assert.deepEqual(body['messages'][2].tool_calls[0].function, { name: 'add', arguments: '{"a":1}' })
      assert.equal(body['messages'][3].tool_call_id, 'c1')
    })

    test('an abort is seen by the provider and thrown to the consumer', async () => {
      await provider.script([[{ text: 'a' }, { stall: true }]])
      const abort = new AbortController()
      const parts: ModelPart[] = []

      const reading = (async () => {
        for await (const some of client.create(provider.baseUrl).stream(hello, abort.signal)) {
          parts.push(...some)
          abort.abort(new Error('enough'))
        }
      })()

      await assert.rejects(reading, /enough/)
      assert.equal(textOf(parts), 'a')
      await provider.waitFor({ closedEarly: 1 })
    })

    test('an abort before the first byte closes the connection too', async () => {
      await provider.script([[{ stall: true }]])
      const abort = new AbortController()

      const reading = readAll(client.create(provider.baseUrl), hello, abort.signal)
      await provider.waitFor({ requests: 1 })
      abort.abort(new Error('enough'))

      assert.match(String((await reading).error), /enough/)
      await provider.waitFor({ closedEarly: 1 })
    })

    test('nothing is asked with a signal that was aborted before', async () => {
      const { error } = await readAll(client.create(provider.baseUrl), hello, AbortSignal.abort(new Error('enough')))

      assert.match(String(error), /enough/)
      assert.deepEqual(await provider.requests(), [])
    })

    test('a consumer that leaves closes the connection', async () => {
      await provider.script([[{ text: 'a' }, { stall: true }]])

      for await (const _ of client.create(provider.baseUrl).stream(hello, new AbortController().signal)) break

      await provider.waitFor({ closedEarly: 1 })
    })

    test('a port that nobody listens on is unavailable and may be retried', async () => {
      const { error } = await readAll(client.create(`http://127.0.0.1:${await closedPort()}/v1`))

      assert.ok(error instanceof AppError)
      assert.equal(error.code, 'model_unavailable')
      assert.equal(error.retryable, true)
      assert.match(error.message, /ECONNREFUSED/)
    })

    test('a name that does not resolve is unavailable', async () => {
      const { error } = await readAll(client.create('http://nobody.invalid/v1'))

      assert.equal((error as AppError).code, 'model_unavailable')
    })
  })
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
