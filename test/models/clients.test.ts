// Every client of the OpenAI wire must return the same for the same answer: one table of answers,
// over a real socket, against a provider in its own process.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { AppError } from '../../src/errors/app-error.ts'
import type { Model, ModelPart } from '../../src/models/model.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { cases } from './answer-cases.ts'
import type { Case } from './answer-cases.ts'
import { aiSdkCompatibleModel, aiSdkOpenAiModel, codeOf, hello, leanModel, readAll, textOf } from './model-harness.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

const clients: { name: string; create: (baseUrl: string) => Model; skips: (one: Case) => string | undefined }[] = [
  { name: 'our own client', create: (baseUrl) => leanModel(baseUrl), skips: () => undefined },
  { name: 'the AI SDK for compatible servers', create: aiSdkCompatibleModel, skips: (one) => one.leanOnly },
  { name: 'the AI SDK for OpenAI', create: aiSdkOpenAiModel, skips: (one) => one.leanOnly ?? one.notOpenAi },
]

describe('a text that was cut inside a character', () => {
  for (const { name, create } of clients.slice(0, 2)) {
    test(`is sent as JSON that every parser accepts, by ${name}`, async () => {
      const messages = [{ role: 'user' as const, content: 'Hi \ud83d\ud83d\ude00 \\ud83d' }]

      await readAll(create(provider.baseUrl), { ...hello, messages })

      const [seen] = await provider.requests()
      assert.equal(JSON.stringify(seen?.body.messages).match(/\ufffd/g)?.length, 1)
      assert.match(JSON.stringify(seen?.body.messages), /Hi \ufffd\u{1f600} \\\\ud83d"/u)
    })
  }
})

for (const client of clients) {
  describe(client.name, () => {
    for (const one of cases) {
      const skip = client.skips(one)
      test(one.title, skip === undefined ? {} : { skip }, async () => {
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
        [
          {
            toolCalls: [
              { ...call, id: 'same' },
              { ...call, id: 'same' },
              { ...call, id: null },
            ],
          },
          { finish: 'tool_calls' },
        ],
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
        tools: [
          { name: 'add', description: 'Adds', inputSchema: { type: 'object', properties: { a: { type: 'number' } } } },
        ],
        temperature: 0.5,
        maxTokens: 64,
      })

      const [seen] = await provider.requests()
      const body = seen?.body ?? {}
      const messages = body.messages ?? []
      const [tool] = (body['tools'] ?? []) as { function: { name: string; parameters: Record<string, unknown> } }[]
      const [call] = (messages[2]?.['tool_calls'] ?? []) as { function: unknown }[]
      assert.equal(seen?.path, '/v1/chat/completions')
      assert.equal(seen?.hasAuthorization, true)
      assert.equal(body.model, 'vendor/fake')
      assert.equal(body['stream'], true)
      assert.deepEqual(body['stream_options'], { include_usage: true })
      assert.equal(body['temperature'], 0.5)
      assert.equal(body['max_tokens'], 64)
      assert.equal(tool?.function.name, 'add')
      assert.deepEqual(tool?.function.parameters['properties'], { a: { type: 'number' } })
      assert.deepEqual(
        messages.map((message) => message.role),
        ['system', 'user', 'assistant', 'tool'],
      )
      assert.deepEqual(call?.function, { name: 'add', arguments: '{"a":1}' })
      assert.equal(messages[3]?.['tool_call_id'], 'c1')
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

    test('a port without a listener is unavailable and may be retried', async () => {
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
