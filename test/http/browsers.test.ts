// A foreign web page can do nothing to a server on the same machine. The tests write requests
// byte by byte, because HTTP clients choose `Host` and `Origin` themselves.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { calls, type Json, runIdOf, says, someone, toolState, sharedTestServers } from '../support/test-server.ts'
import type { Polylog } from '../support/polylog.ts'

const apiKeys = apiKeysSetting({ ann: 'ann-key' })

const [open, required, proxied] = sharedTestServers(
  { POLYLOG_ALLOWED_HOSTS: 'agent.example.com', POLYLOG_CORS_ORIGINS: 'https://app.example.com' },
  { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeys },
  { POLYLOG_ALLOWED_HOSTS: 'agent.example.com', POLYLOG_TRUST_PROXY: '1' },
)

type RawAnswer = { status: number; body: Json }

/** Sends the lines as they are and reads the answer to its end. */
async function send(polylog: Polylog, lines: string[], body = ''): Promise<RawAnswer> {
  const { hostname, port } = new URL(polylog.baseUrl)
  const socket = connect(Number(port), hostname)
  socket.write([...lines, 'Connection: close', `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n'))
  let text = ''
  for await (const part of socket) text += String(part)
  const json = /\{.*\}/s.exec(text.slice(text.indexOf('\r\n\r\n')))?.[0]
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]),
    body: json === undefined ? {} : (JSON.parse(json) as Json),
  }
}

const hostOf = (polylog: Polylog) => new URL(polylog.baseUrl).host

describe('Host', () => {
  test('of another name is refused on every route and in both modes, which stops DNS rebinding', async () => {
    for (const { polylog } of [open, required]) {
      for (const line of [
        'GET /v1/agent/runs HTTP/1.1',
        'GET /v1/health HTTP/1.1',
        'GET /docs HTTP/1.1',
        'GET /nowhere HTTP/1.1',
        'OPTIONS /v1/agent/chat HTTP/1.1',
        'POST /v1/agent/chat HTTP/1.1',
      ]) {
        const { status, body } = await send(polylog, [line, 'Host: evil.example:3000', 'X-API-Key: ann-key'])
        assert.deepEqual([status, body.code], [403, 'host_not_allowed'], line)
        assert.match(body.message, /"evil\.example".*POLYLOG_ALLOWED_HOSTS/)
      }
    }
  })

  test('that a trusted proxy reports has to be a name of this server, too; nobody else can report one', async () => {
    const ask = async ({ polylog }: typeof proxied, forwarded: string) => {
      const lines = ['GET /v1/agent/runs HTTP/1.1', `Host: ${hostOf(polylog)}`, `X-Forwarded-Host: ${forwarded}`]
      const { status, body } = await send(polylog, lines)
      return [status, body.code]
    }

    assert.deepEqual(await ask(proxied, 'evil.example'), [403, 'host_not_allowed'])
    assert.deepEqual(await ask(proxied, 'no name'), [400, 'host_invalid'])
    assert.deepEqual(await ask(proxied, 'agent.example.com'), [200, undefined])
    assert.deepEqual(await ask(open, 'evil.example'), [200, undefined])
  })

  test('that is the address, localhost or listed is answered', async () => {
    const { polylog } = open
    const { port } = new URL(polylog.baseUrl)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost', '[::1]', 'agent.example.com'])
      assert.equal((await send(polylog, ['GET /v1/health HTTP/1.1', `Host: ${host}`])).status, 200, host)
  })

  test('that is missing, doubled or no host name is refused with a sentence', async () => {
    const { polylog } = open
    for (const lines of [
      [],
      ['Host: localhost', 'Host: localhost'],
      ['Host: evil.example', 'Host: localhost'],
      ['Host: a b'],
    ]) {
      const { status, body } = await send(polylog, ['GET /v1/health HTTP/1.1', ...lines])
      assert.deepEqual([status, body.code], [400, 'host_invalid'], JSON.stringify(lines))
    }
  })
})

describe('Origin', () => {
  const evil = { origin: 'http://evil.example' }

  test('of a foreign page is refused on every route that changes something, in both modes', async () => {
    for (const server of [open, required]) {
      const { body } = await server.call('GET', '/openapi.json')
      const routes = Object.entries(body.paths as Record<string, Json>).flatMap(([path, methods]) =>
        Object.keys(methods)
          .filter((method) => method !== 'get')
          .map((method) => [method.toUpperCase(), path.replace(/\{[^}]+\}/g, 'x')] as const),
      )
      assert.ok(routes.length > 15)
      for (const [method, path] of routes) {
        const answer = await server.call(method, path, { body: {}, headers: { ...evil, 'x-api-key': 'ann-key' } })
        assert.equal(answer.status, 403, `${method} ${path} answered ${answer.text}`)
        assert.match(answer.text, /evil\.example.*POLYLOG_CORS_ORIGINS/)
      }
    }
  })

  test('a page cannot agree to a tool call, not even with a request that needs no preflight', async () => {
    const user = someone()
    await open.provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], user)
    const stream = await open.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    const path = `/v1/tool-confirmations/${json.data.confirmationId}/confirm?userId=${user}`
    await open.reaches(user, runIdOf(stream), 'awaiting_input')

    for (const headers of [
      evil,
      { origin: 'null' },
      { ...evil, 'content-type': 'text/plain' },
      { 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      const { status } = await open.call('POST', path, { headers })
      assert.equal(status, 403, JSON.stringify(headers))
    }
    assert.equal((await open.call('GET', path.replace('/confirm', ''))).body.status, 'pending')
    assert.equal((await open.call('POST', path)).status, 200)
    await stream.ended()
  })

  test('of our own page, of a listed one, and none at all are accepted', async () => {
    const origins: Record<string, string>[] = [
      {},
      { origin: open.polylog.baseUrl, 'sec-fetch-site': 'same-origin' },
      { origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of origins)
      assert.equal((await open.call('POST', '/v1/conversations', { body: {}, headers })).status, 200)
    // The page behind a proxy that ends TLS: the same name, another scheme.
    const lines = [`POST /v1/conversations HTTP/1.1`, 'Host: agent.example.com', 'Origin: https://agent.example.com']
    assert.equal((await send(open.polylog, [...lines, 'Content-Type: application/json'], '{}')).status, 200)
  })

  test('bodies of forms and plain text are refused without an Origin too', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/plain;application/json']) {
      const lines = ['POST /v1/agent/chat HTTP/1.1', `Host: ${hostOf(open.polylog)}`, `Content-Type: ${type}`]
      const { status, body } = await send(open.polylog, lines, '{"input":"hi"}')
      assert.deepEqual([status, body.code], [415, 'unsupported_media_type'], type)
    }
  })
})
