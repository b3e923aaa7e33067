// The providers with wires of their own, over a real socket: a complete answer is decoded, and
// one that was cut off is never taken for complete.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { Model } from '../../src/models/model.ts'
import { createModels } from '../../src/models/providers.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { Action, FakeProvider } from '../support/fake-provider.ts'
import { codeOf, countingIds, hello, readAll, secretKey, textOf } from './model-harness.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

const bytes = (...events: object[]): Action => ({
  bytesBase64: events.map((event) =>
    Buffer.from(
      `${'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
    ).toString('base64'),
  ),
})

const wires: { name: string; open: () => Model; begin: Action; end: Action; path: RegExp }[] = [
  {
    name: 'anthropic',
    open: () =>
      createModels({
        anthropicApiKey: secretKey,
        anthropicBaseUrl: `${provider.baseUrl}/`,
        ids: countingIds(),
        clock: systemClock,
      }).open('anthropic/x'),
    path: /\/v1\/messages$/,
    begin: bytes(
      {
        type: 'message_start',
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          model: 'x',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 4, output_tokens: 1 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello ' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'there' } },
    ),
    end: bytes(
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ),
  },
  {
    name: 'google',
    open: () =>
      createModels({
        googleApiKey: secretKey,
        googleBaseUrl: provider.baseUrl,
        ids: countingIds(),
        clock: systemClock,
      }).open('google/x'),
    path: /:streamGenerateContent$/,
    begin: bytes(
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hello ' }] }, index: 0 }] },
      { candidates: [{ content: { role: 'model', parts: [{ text: 'there' }] }, index: 0 }] },
    ),
    end: bytes({
      candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2, totalTokenCount: 6 },
    }),
  },
  {
    name: 'ollama',
    open: () =>
      createModels({
        ollamaBaseUrl: provider.baseUrl.replace(/\/v1$/, ''),
        ids: countingIds(),
        clock: systemClock,
      }).open('ollama/x'),
    path: /^\/v1\/chat\/completions$/,
    begin: { text: ['Hello ', 'there'] },
    end: { finish: 'stop', usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 } },
  },
]

for (const wire of wires) {
  describe(wire.name, () => {
    test('a whole answer is understood', async () => {
      await provider.script([[wire.begin, wire.end, { end: true }]])

      const { parts, error } = await readAll(wire.open())

      assert.equal(error, undefined)
      assert.equal(textOf(parts), 'Hello there')
      assert.deepEqual(parts.at(-1), { type: 'finish', reason: 'stop', usage: { inputTokens: 4, outputTokens: 2 } })
      assert.match((await provider.requests())[0]?.path ?? '', wire.path)
    })

    for (const [how, ending] of [
      ['ends', { end: true }],
      ['is cut', { cut: true }],
    ] as const) {
      test(`an answer that ${how} in the middle is incomplete`, async () => {
        await provider.script([[wire.begin, ending]])

        const outcome = await readAll(wire.open())

        assert.equal(textOf(outcome.parts), 'Hello there')
        assert.equal(codeOf(outcome), 'model_stream_incomplete')
        assert.ok(outcome.parts.every((part) => part.type !== 'finish'))
      })
    }

    test('an answer that ends before it began is incomplete', async () => {
      await provider.script([[{ end: true }]])

      assert.equal(codeOf(await readAll(wire.open())), 'model_stream_incomplete')
    })

    for (const [status, code] of [
      [401, 'model_auth_failed'],
      [429, 'model_rate_limited'],
      [500, 'model_unavailable'],
      [400, 'model_error'],
    ] as const) {
      test(`${status} is ${code}, after one request and without the key`, async () => {
        await provider.script([
          [
            {
              status,
              body: { type: 'error', error: { type: 'x', message: `no ${secretKey}`, code: status, status: 'X' } },
            },
          ],
        ])

        const outcome = await readAll(wire.open())

        assert.equal(codeOf(outcome), code)
        if (wire.name !== 'ollama') assert.doesNotMatch(String(outcome.error), /sk-secret/)
        assert.equal((await provider.requests()).length, 1)
      })
    }

    test('an abort is seen by the provider', async () => {
      await provider.script([[wire.begin, { stall: true }]])
      const abort = new AbortController()

      const reading = (async () => {
        for await (const _ of wire.open().stream(hello, abort.signal)) abort.abort(new Error('enough'))
      })()

      await assert.rejects(reading, /enough/)
      await provider.waitFor({ closedEarly: 1 })
    })
  })
}

test('the address of ollama may already name its compatible side', async () => {
  const models = createModels({ ollamaBaseUrl: `${provider.baseUrl}/`, ids: countingIds(), clock: systemClock })

  const { parts } = await readAll(models.open('ollama/x'))

  assert.equal(textOf(parts), 'Hello from the fake provider.')
  assert.equal((await provider.requests())[0]?.path, '/v1/chat/completions')
})
