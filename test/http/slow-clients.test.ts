// Clients that send slowly, or stop sending, hold a socket only for a bounded time. Clients that
// read for a long time, or send slowly without stopping, are not disconnected.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { endOf, named, someone, startTestServer, until, sharedTestServer } from '../support/test-server.ts'
import { collect, dialServer, write } from '../support/raw-socket.ts'

const headersMs = 300
const requestMs = 3000
const idleMs = 1000

const server = sharedTestServer({
  POLYLOG_HEADERS_TIMEOUT_MS: String(headersMs),
  POLYLOG_REQUEST_TIMEOUT_MS: String(requestMs),
  POLYLOG_BODY_IDLE_MS: String(idleMs),
  POLYLOG_PING_MS: '50',
})

describe('sending', () => {
  test('headers that never end are answered with 408, and the connection is closed', async () => {
    const socket = dialServer(server.polylog.baseUrl)
    const received = collect(socket)
    socket.write('GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx-slow: ')
    let dripped = 0
    const drip = setInterval(() => {
      dripped += 1
      socket.write('x')
    }, 20)
    await received.closed()
    clearInterval(drip)
    socket.destroy()

    assert.match(received.text(), /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/)
    assert.ok(dripped > 2)
  })

  test('a body that stops coming is answered with 408, and the connection is closed', async () => {
    for (const head of ['content-length: 100', 'transfer-encoding: chunked']) {
      const socket = dialServer(server.polylog.baseUrl)
      const received = collect(socket)
      socket.write(
        `POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${head}\r\n\r\n`,
      )
      socket.write(head.startsWith('content') ? '{"input"' : '8\r\n{"input"\r\n')
      await received.closed()
      socket.destroy()

      assert.match(received.text(), /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/, head)
    }
    assert.doesNotMatch(server.polylog.log(), /"level":"error"/)
  })

  test('a body that comes slowly without stopping is accepted', async () => {
    const body = JSON.stringify({ title: 'slow and steady' })
    const socket = dialServer(server.polylog.baseUrl)
    const received = collect(socket)
    await write(
      socket,
      `POST /v1/conversations HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    // Longer in all than a pause may be, with no pause that is too long.
    const pieces = 8
    const size = Math.ceil(body.length / pieces)
    for (let at = 0; at < body.length; at += size) {
      await wait(idleMs / 6)
      await write(socket, body.slice(at, at + size))
    }
    await received.closed()

    assert.match(received.text(), /^HTTP\/1\.1 200 [\s\S]*slow and steady/)
  })

  test('a body that drips for ever is cut off, too', async () => {
    const socket = dialServer(server.polylog.baseUrl)
    const received = collect(socket)
    socket.write(
      'POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n',
    )
    const drip = setInterval(() => socket.write(' '), 20)
    await received.closed()
    clearInterval(drip)
    socket.destroy()

    assert.match(received.text(), /^HTTP\/1\.1 408 /)
  })

  test('a client that hangs up in the middle of its body leaves nothing behind, and is not logged as an error', async () => {
    const socket = dialServer(server.polylog.baseUrl)
    await write(
      socket,
      'POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"inp',
    )
    socket.destroy()
    for (let round = 0; round < 3; round++) assert.equal((await server.call('GET', '/v1/health')).status, 200)
    assert.doesNotMatch(server.polylog.log(), /"level":"error"/)
  })
})

describe('reading', () => {
  test('a stream outlives every bound on requests', async () => {
    const user = someone()
    await server.provider.script([[{ text: ['one '] }, { stall: true }, { text: ['two'] }, { finish: 'stop' }]], user)
    const stream = await server.chat(user, user)
    await stream.waitFor(named('agent.delta'))
    // More pings than fit into the time that a request may take.
    const pings = Math.ceil((requestMs * 1.5) / 50)
    await stream.waitFor(() => stream.frames.filter(named('ping')).length >= pings)

    await server.provider.release()
    const { cut } = await stream.ended()

    assert.equal(cut, false)
    assert.equal(endOf(stream.frames).output, 'one two')
  })

  test('files that a client asks for and does not read use a bounded amount of memory', async () => {
    const small = await startTestServer({ POLYLOG_UPLOAD_MAX: '8000000' }, server.provider)
    try {
      const user = someone()
      const headers = { 'content-type': 'text/plain' }
      const { body } = await small.call('POST', '/v1/files', { user, raw: 'x'.repeat(8_000_000), headers })
      const path = `/v1/files/${String(body.id)}/content?userId=${user}`
      const ask = () => {
        const socket = dialServer(small.polylog.baseUrl)
        socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
        return socket
      }
      const unread = Array.from({ length: 30 }, () => ask().pause())
      const refused = await until('a refusal', async () => {
        const answer = await fetch(`${small.polylog.baseUrl}${path}`)
        await answer.arrayBuffer()
        return answer.status === 200 ? undefined : answer
      })
      assert.equal(refused.status, 429)
      assert.ok(refused.headers.has('retry-after'))
      for (const socket of unread) socket.destroy()
      const read = await until('a file', async () => {
        const answer = await fetch(`${small.polylog.baseUrl}${path}`)
        const { byteLength } = await answer.arrayBuffer()
        return answer.status === 200 ? byteLength : undefined
      })
      assert.equal(read, 8_000_000)
    } finally {
      await small.close()
    }
  })

  test('HEAD of a stream is over with its headers: the next request of the connection is answered', async () => {
    const user = someone()
    await server.provider.script([[{ text: ['one '] }, { stall: true }, { finish: 'stop' }]], user)
    const stream = await server.chat(user, user)
    await stream.waitFor(named('agent.delta'))
    const runId = String(stream.headers['x-run-id'])
    for (const path of [`/v1/agent/runs/${runId}/stream`, '/v1/feed', '/v1/doctor/stream']) {
      const socket = dialServer(server.polylog.baseUrl)
      const received = collect(socket)
      socket.write(`HEAD ${path}?userId=${user} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
      socket.write('GET /v1/ready HTTP/1.1\r\nhost: localhost\r\n\r\n')
      await received.until(/"status":"ready"/)
      socket.destroy()

      assert.equal(received.text().match(/^HTTP\/1\.1 /gm)?.length, 2, path)
    }
    await server.provider.release()
    await stream.ended()
  })
})

test('connections beyond the limit are closed, and new ones are accepted when others leave', async () => {
  const small = await startTestServer({ POLYLOG_MAX_CONNECTIONS: '5' }, server.provider)
  try {
    const held = Array.from({ length: 5 }, () => dialServer(small.polylog.baseUrl))
    const answers = held.map((socket) => collect(socket))
    for (const socket of held) socket.write('GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await Promise.all(answers.map((answer) => answer.until(/HTTP\/1\.1 200/)))
    const refused = dialServer(small.polylog.baseUrl)
    const nothing = collect(refused)
    refused.write('GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await nothing.closed()
    for (const socket of held) socket.destroy()
    const health = await until('room', async () => {
      const answer = await small.call('GET', '/v1/health').catch(() => undefined)
      return answer?.status === 200 ? answer : undefined
    })

    assert.equal(nothing.text(), '')
    assert.equal(health.status, 200)
  } finally {
    await small.close()
  }
})
