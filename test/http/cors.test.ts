// CORS: no other origin is allowed unless it is configured, and then streams are allowed too.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStream } from '../support/sse.ts'
import { startPolylog } from '../support/polylog.ts'

const origin = 'http://app.example'
const preflight = {
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type,authorization',
  },
}

describe('a page of another origin', () => {
  it('gets no CORS headers unless its origin is configured', async () => {
    const server = await startPolylog()
    try {
      const asked = await fetch(`${server.baseUrl}/v1/agent/chat`, preflight)
      const health = await fetch(`${server.baseUrl}/v1/health`, { headers: { origin } })

      assert.equal(asked.headers.get('access-control-allow-origin'), null)
      assert.equal(health.headers.get('access-control-allow-origin'), null)
    } finally {
      await server.dispose()
    }
  })

  it('may send requests and stream if its origin is configured, and others still may not', async () => {
    const server = await startPolylog({ POLYLOG_CORS_ORIGINS: `${origin}, http://other.example` })
    try {
      const asked = await fetch(`${server.baseUrl}/v1/agent/chat`, preflight)
      assert.equal(asked.status, 204)
      assert.equal(asked.headers.get('access-control-allow-origin'), origin)
      assert.match(asked.headers.get('access-control-allow-headers') ?? '', /authorization/i)
      const plain = await fetch(`${server.baseUrl}/v1/agent/chat`, { method: 'OPTIONS' })
      assert.equal(plain.status, 204, 'an OPTIONS request that is no preflight')

      const stream = await openStream(`${server.baseUrl}/v1/agent/chat`, {
        body: { input: 'hello' },
        headers: { origin },
      })
      assert.equal(stream.headers['access-control-allow-origin'], origin)
      // Without x-should-retry, a client of OpenAI in a page would repeat a request whose run has failed.
      const names =
        'x-run-id x-should-retry x-request-id location content-location x-cached content-disposition retry-after'
      for (const name of names.split(' '))
        assert.match(String(stream.headers['access-control-expose-headers']), new RegExp(`\\b${name}\\b`))
      await stream.ended()

      const stranger = await fetch(`${server.baseUrl}/v1/health`, { headers: { origin: 'http://evil.example' } })
      assert.notEqual(stranger.headers.get('access-control-allow-origin'), 'http://evil.example')
    } finally {
      await server.dispose()
    }
  })

  it('sees the security headers on every answer', async () => {
    const server = await startPolylog()
    try {
      const stream = await openStream(`${server.baseUrl}/v1/agent/chat`, { body: { input: 'hello' } })
      const answers: [string, Headers][] = [['a stream', new Headers(stream.headers as Record<string, string>)]]
      for (const path of ['/v1/health', '/docs', '/nowhere'])
        answers.push([path, (await fetch(`${server.baseUrl}${path}`)).headers])
      for (const [path, headers] of answers) {
        assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
        assert.equal(headers.get('x-frame-options'), 'SAMEORIGIN', path)
        assert.equal(headers.get('cross-origin-resource-policy'), 'same-site', path)
        assert.equal(headers.get('strict-transport-security'), 'max-age=31536000; includeSubDomains', path)
      }
      await stream.ended()
      const docs = await fetch(`${server.baseUrl}/docs`)
      assert.match(docs.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    } finally {
      await server.dispose()
    }
  })
})
