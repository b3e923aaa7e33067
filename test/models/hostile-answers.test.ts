// Providers that break their own contract: chunks of any shape, lines without an end,
// too many calls, redirects. Every client answers with an error of ours, and neither
// fills the memory nor gives the key to another host.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, test, type TestContext } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { Model } from '../../src/models/model.ts'
import { createModels } from '../../src/models/providers.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { aiSdkCompatibleModel, codeOf, countingIds, leanModel, readAll, secretKey } from './model-harness.ts'

let provider: FakeProvider
before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

/** Writes as fast as the client reads, until it closes the connection. `count` gets the number of bytes of each write. */
function writeForever(response: ServerResponse, count: (bytes: number) => void): void {
  const block = Buffer.alloc(256 * 1024, 'x')
  const more = () => {
    while (!response.destroyed) {
      count(block.length)
      if (!response.write(block)) break
    }
  }
  response.on('drain', more)
  more()
}

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const parts = { ids: countingIds(), clock: systemClock }
const clients: { name: string; open: (address: string) => Model }[] = [
  { name: 'our own client', open: (address) => leanModel(`${address}/v1`) },
  { name: 'the AI SDK for compatible servers', open: (address) => aiSdkCompatibleModel(`${address}/v1`) },
  {
    name: 'anthropic',
    open: (address) =>
      createModels({ anthropicApiKey: secretKey, anthropicBaseUrl: address, ...parts }).open('anthropic/x'),
  },
  {
    name: 'google',
    open: (address) => createModels({ googleApiKey: secretKey, googleBaseUrl: address, ...parts }).open('google/x'),
  },
  { name: 'ollama', open: (address) => createModels({ ollamaBaseUrl: address, ...parts }).open('ollama/x') },
]

for (const client of clients) {
  describe(client.name, () => {
    for (const status of [301, 302, 307, 308]) {
      test(`a redirect (${status}) is an error, and the key goes nowhere else`, async (t) => {
        const visitors: string[] = []
        const elsewhere = await serve(t, (request, response) => {
          visitors.push(JSON.stringify(request.headers))
          response.end('{}')
        })
        const address = await serve(t, (_, response) => {
          response.writeHead(status, { location: `${elsewhere}/v1/chat/completions` })
          response.end()
        })

        const outcome = await readAll(client.open(address))

        assert.equal(codeOf(outcome), 'model_error')
        assert.deepEqual(visitors, [])
      })
    }

    test('a line without an end is an error before it fills the memory', async (t) => {
      let sent = 0
      const address = await serve(t, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: ')
        writeForever(response, (bytes) => (sent += bytes))
      })

      const outcome = await readAll(client.open(address))

      assert.equal(codeOf(outcome), 'model_error')
      assert.match(String(outcome.error), /longer than 8 MiB/)
      assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken`)
    })

    test('a switch to another protocol, which was not asked for, is an error', async (t) => {
      const address = await serve(t, ({ socket }) => {
        socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n')
      })

      const outcome = await readAll(client.open(address))

      assert.match(codeOf(outcome) ?? '', /^model_/)
    })

    test('an error page without an end is read for its beginning only', async (t) => {
      let sent = 0
      const address = await serve(t, (_, response) => {
        response.writeHead(400, { 'content-type': 'text/html' })
        writeForever(response, (bytes) => (sent += bytes))
      })

      const outcome = await readAll(client.open(address))

      assert.match(codeOf(outcome) ?? '', /^model_/)
      assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken`)
    })
  })
}

const shapes = [
  'null',
  '[]',
  '[null]',
  '7',
  '"text"',
  '{"choices":{}}',
  '{"choices":"abc"}',
  '{"choices":[null]}',
  '{"choices":[7]}',
  '{"choices":[[]]}',
  '{"choices":[{"delta":{"tool_calls":{}}}]}',
  '{"choices":[{"delta":{"tool_calls":[null]}}]}',
  '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":null}]}}]}',
  '{"choices":[{"delta":{"content":[null,{"text":7}]}}]}',
  '{"choices":[{"delta":7,"finish_reason":{}}]}',
  '{"choices":[{"delta":{}}],"usage":[]}',
  '['.repeat(100_000),
  `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":${'['.repeat(50_000)}${']'.repeat(50_000)}}}]}}]}`,
]
for (const { name, open } of clients.slice(0, 2)) {
  describe(`${name}, a chunk of an unexpected shape`, () => {
    for (const shape of shapes) {
      test(`${shape.slice(0, 70)} is skipped or an error of the model, nothing else`, async () => {
        const bytes = Buffer.from(`data: ${shape}\n\n`).toString('base64')
        await provider.script([[{ text: 'a' }, { bytesBase64: [bytes] }, { finish: 'stop' }]])

        const outcome = await readAll(open(provider.baseUrl.replace(/\/v1$/, '')))

        assert.match(codeOf(outcome) ?? 'model_none', /^model_/)
      })
    }

    test('that is no object at all is never skipped', async () => {
      for (const shape of ['null', '[]', '7']) {
        const bytes = Buffer.from(`data: ${shape}\n\n`).toString('base64')
        await provider.script([[{ text: 'a' }, { bytesBase64: [bytes] }, { finish: 'stop' }]])

        const outcome = await readAll(open(provider.baseUrl.replace(/\/v1$/, '')))

        assert.match(codeOf(outcome) ?? '', /^model_/, shape)
      }
    })

    test('with thousands of tool calls is refused', async () => {
      const toolCalls = Array.from({ length: 3000 }, (_, index) => ({ index, id: `c${index}`, name: 'f' }))
      await provider.script([[{ toolCalls }, { finish: 'tool_calls' }]])

      assert.equal(codeOf(await readAll(open(provider.baseUrl.replace(/\/v1$/, '')))), 'tool_calls_too_many')
    })

    test('with arguments that are nested too deep is passed on without arguments', async () => {
      const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
      await provider.script([
        [{ toolCalls: [{ id: 'c', name: 'f', arguments: `{"a":${deep}}` }] }, { finish: 'tool_calls' }],
      ])

      const { parts: answer } = await readAll(open(provider.baseUrl.replace(/\/v1$/, '')))
      const call = answer.find((part) => part.type === 'tool-call')

      assert.ok(call !== undefined && !('input' in call))
    })
  })
}
