// What only our own client promises: bounded memory, connections that are reused, and the same
// parts for any division of the bytes.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { ModelPart } from '../../src/models/model.ts'
import { createOpenAiClient } from '../../src/models/openai-client.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { codeOf, countingIds, hello, leanModel, readAll, textOf } from './model-harness.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

const never = new AbortController().signal

test('a base URL may end with a slash', async () => {
  const model = createOpenAiClient({ baseUrl: `${provider.baseUrl}/`, ids: countingIds(), clock: systemClock })

  const { parts } = await readAll(model)

  assert.equal(textOf(parts), 'Hello from the fake provider.')
  assert.equal((await provider.requests())[0]?.path, '/v1/chat/completions')
})

test('characters that are split between reads arrive whole', async () => {
  const text = 'naïve 世界 🌍👩‍👩‍👧'
  const frame = Buffer.from(
    `data: ${JSON.stringify({ choices: [{ delta: { content: text }, finish_reason: null }] })}\n\n`,
  )
  const bytes = [...frame].map((byte) => Buffer.from([byte]).toString('base64'))
  await provider.script([[{ bytesBase64: bytes }, { finish: 'stop' }]])

  const { parts, error } = await readAll(leanModel(provider.baseUrl))

  assert.equal(error, undefined)
  assert.equal(textOf(parts), text)
})

test('a consumer that does not read makes the provider wait, and then gets everything', async () => {
  const chunk = 'x'.repeat(16 * 1024)
  const count = 4_000 // 64 MiB: more than all socket buffers on the way
  await provider.script([[{ flood: { count, text: chunk } }, { finish: 'stop' }]])
  const iterator = leanModel(provider.baseUrl).stream(hello, never)[Symbol.asyncIterator]()
  const parts: ModelPart[] = [...((await iterator.next()).value as ModelPart[])]

  // Standing still is seen by looking until two looks in a row agree.
  let flooded = -1
  for (let look = await progress(); look !== flooded; look = await progress()) flooded = look

  assert.ok(flooded < count / 2, `the provider could write ${flooded} of ${count} chunks`)
  let length = 0
  let finished = false
  for (
    let step = { done: false, value: parts } as IteratorResult<ModelPart[]>;
    !step.done;
    step = await iterator.next()
  ) {
    for (const part of step.value) {
      if (part.type === 'text') length += part.text.length
      if (part.type === 'finish') finished = true
    }
  }
  assert.equal(length, count * chunk.length)
  assert.ok(finished)

  async function progress(): Promise<number> {
    await new Promise((resolve) => setTimeout(resolve, 100))
    return (await provider.requests())[0]?.flooded ?? 0
  }
})

test('everything that waits is handed over in one array', async () => {
  await provider.script([[{ text: ['a', 'b', 'c', 'd'] }, { finish: 'stop' }]])
  const iterator = leanModel(provider.baseUrl).stream(hello, never)[Symbol.asyncIterator]()
  const first = iterator.next()
  await first
  await provider.waitFor({ requests: 1 })
  // The rest has certainly arrived when another whole answer has.
  await readAll(leanModel(provider.baseUrl))

  const second = await iterator.next()
  const third = await iterator.next()

  const all = [...((await first).value as ModelPart[]), ...((second.value as ModelPart[] | undefined) ?? [])]
  assert.equal(textOf(all), 'abcd')
  assert.equal(all.at(-1)?.type, 'finish')
  assert.equal(third.done, true)
})

test('a web page instead of an answer is named as such, and not asked for again', async (t) => {
  const server = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    response.end('<html>Please log in</html>')
  })
  t.after(() => server.stop())
  const model = createOpenAiClient({ baseUrl: server.url, ids: countingIds(), clock: systemClock })
  await assert.rejects(
    async () => {
      for await (const parts of model.stream(hello, never)) assert.deepEqual(parts, [])
    },
    { code: 'model_error', retryable: false, message: /it is a web page; check the address/ },
  )
})

test('an answer in one piece of JSON may come in several reads', async () => {
  const text = 'abcdefghij'.repeat(20_000)
  const body = JSON.stringify({ choices: [{ message: { content: text }, finish_reason: 'stop' }] })
  const server = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(body.slice(0, 100_000))
    setImmediate(() => response.end(body.slice(100_000)))
  })
  const { parts } = await readAll(createOpenAiClient({ baseUrl: server.url, ids: countingIds(), clock: systemClock }))
  await server.stop()
  assert.equal(textOf(parts), text)
})

test('a connection is used again, also when the consumer leaves at the finish and the last bytes come later', async () => {
  const sockets = new Set<unknown>()
  let endFirst = (): void => {}
  const server = await serve((request, response) => {
    sockets.add(request.socket)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    endFirst = () => void response.end()
  })
  const model = createOpenAiClient({ baseUrl: server.url, ids: countingIds(), clock: systemClock })
  const readToTheFinish = async (): Promise<void> => {
    for await (const parts of model.stream(hello, never)) if (parts.some((part) => part.type === 'finish')) return
  }

  await readToTheFinish()
  endFirst()
  // The client learns of the end through its socket; a request on another connection comes back after that.
  await fetch(`${provider.baseUrl}/models`).then((response) => response.text())
  await readToTheFinish()

  await server.stop()
  assert.equal(sockets.size, 1)
})

test('the connection is closed if a server keeps sending after the end of its answer', async () => {
  let closed: Promise<unknown> | undefined
  const server = await serve((_, response) => {
    closed = once(response, 'close')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    const more = (): void => {
      while (response.write(`: ${'x'.repeat(8_000)}\n`) && !response.destroyed);
    }
    response.on('drain', more)
    setImmediate(more)
  })

  const { parts } = await readAll(createOpenAiClient({ baseUrl: server.url, ids: countingIds(), clock: systemClock }))

  assert.deepEqual(parts, [
    { type: 'text', text: 'a' },
    { type: 'finish', reason: 'stop' },
  ])
  await closed
  await server.stop()
})

test('a line without an end fails before it fills the memory', async () => {
  const piece = Buffer.alloc(64 * 1024, 'x')
  let sent = 0
  const server = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: "')
    const more = (): void => {
      while (!response.destroyed && sent < 64 * 1024 * 1024) {
        sent += piece.length
        if (!response.write(piece)) {
          response.once('drain', more)
          return
        }
      }
    }
    more()
  })

  const outcome = await readAll(createOpenAiClient({ baseUrl: server.url, ids: countingIds(), clock: systemClock }))

  await server.stop()
  assert.equal(codeOf(outcome), 'model_error')
  assert.match(String(outcome.error), /8 MiB/)
  assert.ok(sent < 32 * 1024 * 1024, `the server could send ${sent} bytes`)
})

test('a delta that is larger than an event may be is cut into several', async () => {
  const text = `x${'🌍'.repeat(200_000)}` // an even limit would fall between the halves of a pair
  await provider.script([[{ text }, { finish: 'stop' }]])

  const { parts } = await readAll(leanModel(provider.baseUrl))

  assert.equal(textOf(parts), text)
  assert.ok(parts.every((part) => part.type !== 'text' || (part.text.length <= 131_072 && part.text.isWellFormed())))
})

test('without a key no authorization is sent', async () => {
  await readAll(createOpenAiClient({ baseUrl: provider.baseUrl, ids: countingIds(), clock: systemClock }))

  assert.equal((await provider.requests())[0]?.hasAuthorization, false)
})

test('a redirect is refused, not followed with the key', async () => {
  let visits = 0
  const server = await serve((_, response) => {
    visits += 1
    response.writeHead(302, { location: '/elsewhere' })
    response.end()
  })

  const outcome = await readAll(
    createOpenAiClient({ baseUrl: server.url, apiKey: 'k', ids: countingIds(), clock: systemClock }),
  )

  await server.stop()
  assert.equal(codeOf(outcome), 'model_error')
  assert.equal(visits, 1)
})

async function serve(listener: RequestListener): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
