// One table for all clients of the OpenAI wire: the behaviour of a provider, and the parts and
// the error that the client must return for it.

import type { ModelPart } from '../../src/models/model.ts'
import type { Action } from '../support/fake-provider.ts'
import { secretKey } from './model-harness.ts'

export type Case = {
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
const finish = (reason: 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other'): ModelPart => ({
  type: 'finish',
  reason,
  usage,
})
const add = (callId: string, rawInput: string, input?: object): ModelPart =>
  ({ type: 'tool-call', callId, name: 'add', rawInput, ...(input === undefined ? {} : { input }) }) as ModelPart

export const cases: Case[] = [
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
    answer: [
      { text: 'a' },
      { toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a": 1, "b": "ü"}', pieces: 3 }] },
      { finish: 'tool_calls' },
    ],
    parts: [...text('a'), add('c1', '{"a": 1, "b": "ü"}', { a: 1, b: 'ü' }), finish('tool-calls')],
  },
  {
    title: 'parallel tool calls whose fragments are interleaved are kept apart',
    answer: [
      {
        toolCalls: [
          { id: 'c1', name: 'add', arguments: '{"a":11}', pieces: 2 },
          { id: 'c2', name: 'add', arguments: '{"a":22}', pieces: 3 },
        ],
      },
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
  {
    title: 'the token limit is a finish',
    answer: [{ text: 'a' }, { finish: 'length' }],
    parts: [...text('a'), finish('length')],
  },
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
      {
        finish: 'stop',
        usage: {
          prompt_tokens: 1,
          completion_tokens: 9,
          total_tokens: 10,
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      },
    ],
    parts: [
      ...text('a'),
      { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 9, reasoningTokens: 4 } },
    ],
  },
  {
    title: 'tokens that were read from the prompt cache are reported',
    answer: [
      { text: 'a' },
      {
        finish: 'stop',
        usage: {
          prompt_tokens: 100,
          completion_tokens: 9,
          total_tokens: 109,
          prompt_tokens_details: { cached_tokens: 64 },
        },
      },
    ],
    parts: [
      ...text('a'),
      { type: 'finish', reason: 'stop', usage: { inputTokens: 100, cachedTokens: 64, outputTokens: 9 } },
    ],
  },

  // Ends that are none.
  {
    title: 'a stream that ends without a finish is incomplete',
    answer: [{ text: 'a' }, { end: true }],
    parts: text('a'),
    code: 'model_stream_incomplete',
    retryable: true,
  },
  {
    title: 'a stream that ends before it began is incomplete',
    answer: [{ end: true }],
    code: 'model_stream_incomplete',
    retryable: true,
  },
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
    answer: [{ text: 'a' }, { halfJson: true }, { finish: 'stop', usage: false }],
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
    title: 'the tokens that were reported before the connection broke are told',
    answer: [{ text: 'a' }, { usage: { prompt_tokens: 11, completion_tokens: 7 } }, { cut: true }],
    parts: [...text('a'), { type: 'spent', usage }],
    code: 'model_stream_incomplete',
    leanOnly: 'the adapters of the AI SDK do not tell the usage of a broken connection',
  },
  {
    title: 'the tokens that were reported before an error are told',
    answer: [
      { text: 'a' },
      { usage: { prompt_tokens: 11, completion_tokens: 7 } },
      { error: { message: 'The engine is on fire', type: 'server_error' } },
      { end: true },
    ],
    parts: [...text('a'), { type: 'spent', usage }],
    code: 'model_error',
  },
  {
    title: 'the tokens of an answer without an end are told',
    answer: [{ text: 'a' }, { usage: { prompt_tokens: 11, completion_tokens: 7 } }, { end: true }],
    parts: [...text('a'), { type: 'spent', usage }],
    code: 'model_stream_incomplete',
  },
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
  {
    title: 'an error page that is no JSON is quoted too',
    answer: [{ status: 500, body: '<h1>Bad</h1>' }],
    code: 'model_unavailable',
    message: /Bad/,
  },

  // What only our own client can see.
  {
    title: '[DONE] after some content counts as a stop',
    answer: [{ text: 'a' }, { done: true }, { end: true }],
    parts: [...text('a'), { type: 'finish', reason: 'stop' }],
    leanOnly: 'the AI SDK does not show [DONE]; it fails, which is safe',
  },
  {
    title: '[DONE] after nothing is incomplete',
    answer: [{ done: true }, { end: true }],
    code: 'model_stream_incomplete',
  },
  {
    title: 'a cut after the finish reason is a good end',
    answer: [
      { text: 'a' },
      { bytesBase64: [base64('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n')] },
      { cut: true },
    ],
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
              message: {
                content: 'all at once',
                tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
              },
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

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
