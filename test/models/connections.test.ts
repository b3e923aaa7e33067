// The connections to providers: kept open between requests, and made through a proxy if the environment says so.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { Model } from '../../src/models/model.ts'
import { createModels } from '../../src/models/providers.ts'
import { until } from '../support/until.ts'
import { countingIds, readAll, secretKey, textOf } from './model-harness.ts'

const chatAnswer = [
  { choices: [{ index: 0, delta: { content: 'Hi' } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  '[DONE]',
]
const usage = { input_tokens: 1, output_tokens: 1 }
const messagesAnswer = [
  { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [], usage } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
]

/** Answers each request. The body may end later than the answer in it. */
const asked: Socket[] = []
let endsLater = false
let end: () => void = () => {}
const provider = http.createServer((request, response) => {
  asked.push(request.socket)
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of request.url === '/v1/messages' ? messagesAnswer : chatAnswer) {
    response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
  }
  end = () => response.end()
  if (!endsLater) end()
})

/** Opens tunnels for any address, and takes whole addresses in the request line; both count. */
let proxied = 0
const proxy = http.createServer((request, response) => {
  proxied += 1
  const forward = http.request(request.url ?? '', { method: 'POST', headers: request.headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    answer.pipe(response)
  })
  request.pipe(forward)
})
proxy.on('connect', (request: http.IncomingMessage, socket: Socket) => {
  proxied += 1
  const [host, port] = (request.url ?? '').split(':')
  const target = connect(Number(port), host)
  socket.write('HTTP/1.1 200 OK\r\n\r\n')
  target.pipe(socket).pipe(target)
})

const addressOf = (server: http.Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

before(async () => {
  for (const server of [provider, proxy]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
beforeEach(() => {
  asked.length = 0
  endsLater = false
  proxied = 0
})
after(() => {
  for (const server of [provider, proxy]) {
    server.close()
    server.closeAllConnections()
  }
})

const clients = {
  'our own client': { openaiClient: 'lean', model: 'openai/fake', isDoneBeforeTheEnd: true },
  'the AI SDK for compatible servers': { openaiClient: 'ai-sdk', model: 'openai/fake', isDoneBeforeTheEnd: false },
  'the AI SDK for Anthropic': { openaiClient: 'lean', model: 'anthropic/x', isDoneBeforeTheEnd: true },
} as const

for (const [name, { openaiClient, model, isDoneBeforeTheEnd }] of Object.entries(clients)) {
  describe(name, () => {
    const open = (environment: Record<string, string>): Model =>
      createModels({
        openaiApiKey: secretKey,
        openaiBaseUrl: `${addressOf(provider)}/v1`,
        openaiClient,
        anthropicApiKey: secretKey,
        anthropicBaseUrl: `${addressOf(provider)}/v1`,
        environment,
        ids: countingIds(),
        clock: systemClock,
      }).open(model)
    const answer = async (client: Model) => textOf((await readAll(client)).parts)

    test('asks again over a connection that it has', async () => {
      endsLater = isDoneBeforeTheEnd
      const client = open({})
      // A connection is free when the client has seen the end of its response, which may be after the next request.
      await until('a connection to be used again', async () => {
        assert.equal(await answer(client), 'Hi')
        end()
        return new Set(asked).size < asked.length ? true : undefined
      })
    })

    test('prepares a connection for the next request, if it can', async () => {
      let connections = 0
      const count = () => void (connections += 1)
      provider.on('connection', count)
      const client = open({})
      client.prepare?.()
      assert.equal(await answer(client), 'Hi')
      provider.off('connection', count)
      assert.equal(connections, 1)
    })

    test('goes through a proxy if NODE_USE_ENV_PROXY is 1', async () => {
      assert.equal(await answer(open({ NODE_USE_ENV_PROXY: '1', HTTP_PROXY: addressOf(proxy) })), 'Hi')
      assert.equal(proxied, 1)
    })

    test('goes past it for the hosts of NO_PROXY, and without NODE_USE_ENV_PROXY', async () => {
      const HTTP_PROXY = addressOf(proxy)
      assert.equal(await answer(open({ HTTP_PROXY })), 'Hi')
      assert.equal(await answer(open({ NODE_USE_ENV_PROXY: '1', HTTP_PROXY, NO_PROXY: '127.0.0.1' })), 'Hi')
      assert.equal(proxied, 0)
    })
  })
}
