// The cost of a body is bounded: depth, values, entries and bytes are limited on all routes
// before anything else reads it, and a refused body gets its answer, also while the client is
// still sending.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { collect, dialServer, write } from '../support/raw-socket.ts'
import { type Json, someone, sharedTestServer } from '../support/test-server.ts'

const server = sharedTestServer()

const post = (path: string, raw: string) => server.call('POST', path, { raw, user: someone() })

describe('the shape of a body', () => {
  const routes = ['/v1/agent/chat', '/api/get_chat_response', '/api/chat/stream', '/v1/jobs', '/v1/conversations']

  test('one that is nested too deeply is 400 with the limit, on every route', async () => {
    for (const path of routes) {
      const answer = await post(path, `{"input":"hi","context":${'['.repeat(1900)}${']'.repeat(1900)}}`)

      assert.equal(answer.status, 400, path)
      assert.match(answer.text, /64 levels/)
    }
    const answer = await post('/v1/agent/chat', `{"context":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`)
    assert.equal(answer.body.code, 'body_too_complex')
  })

  test('600,000 content parts, a million items, a huge key: 400, named, and short', async () => {
    const parts = Array.from({ length: 60_000 }, () => '{"type":"text"}').join(',')
    for (const [path, raw] of [
      ['/v1/agent/chat', `{"messages":[{"role":"user","content":[${parts}]}]}`],
      ['/v1/tool-confirmations/batch/confirm', `{"items":[${Array.from({ length: 60_000 }, () => '{}').join(',')}]}`],
      ['/v1/tool-confirmations/batch/reject', `{"items":[${'[],'.repeat(500_000)}[]]}`],
      ['/v1/agent/chat', `{"input":"hi","${'k'.repeat(100_000)}":1}`],
    ] as const) {
      const answer = await post(path, raw)

      assert.deepEqual([answer.status, answer.body.code], [400, 'body_too_complex'], path)
      assert.ok(answer.text.length < 1000)
    }
  })

  test('a list with thousands of wrong entries gets a short answer that counts them', async () => {
    const answer = await post(
      '/v1/tool-confirmations/batch/confirm',
      JSON.stringify({ items: Array.from({ length: 900 }, () => ({ id: 7 })) }),
    )

    assert.equal(answer.status, 400)
    assert.equal((answer.body.details.issues as Json[]).length, 20)
    assert.match(answer.body.message, /899 more/)
  })

  test('a text that is not JSON is answered with the place and what was expected', async () => {
    const answer = await post('/v1/agent/chat', '{\n  "input": "hi",\n}')

    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_json'])
    assert.match(answer.body.message, /line 3, column 1: expected a field name in double quotes, found "}"/)
    assert.deepEqual(answer.body.details, {
      line: 3,
      column: 1,
      offset: 19,
      expected: 'a field name in double quotes',
    })
  })

  test('a number that JSON cannot hold is 400 with its place, on every route', async () => {
    const digits = '9'.repeat(400)
    for (const path of routes) {
      for (const number of ['1e999', '-1e999', digits]) {
        const answer = await post(path, `{"input":"hi","context":{"list":[1,{"a":${number}}]}}`)

        assert.deepEqual(
          [answer.status, /context\.list\.1\.a: The number is too large/.test(answer.text)],
          [400, true],
          path,
        )
      }
    }
    const alone = await post('/v1/agent/chat', '1e999')
    assert.deepEqual(
      [alone.status, alone.body.code, alone.body.message],
      [400, 'invalid_json', 'The number is too large; at most about 1.8e308 is possible.'],
    )
    const text = await post('/v1/conversations', `{"title":"1e999 and ${digits}"}`)
    assert.equal(text.status < 300, true, text.text)
  })

  test('a query with hundreds of parameters is 400', async () => {
    const query = Array.from({ length: 300 }, (_, at) => `p${at}=1`).join('&')
    const answer = await server.call('GET', `/v1/conversations?${query}`)

    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'])
  })

  test('headers beyond their bound are 431, as JSON', async () => {
    const answer = await raw(`GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx-large: ${'x'.repeat(20_000)}\r\n\r\n`)

    assert.match(answer, /^HTTP\/1\.1 431 /)
    assert.match(answer, /"code":"headers_too_large"/)
  })

  test('bytes that are not HTTP are 400, as JSON', async () => {
    const answer = await raw('hello\r\n\r\n')

    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.match(answer, /"code":"invalid_request"/)
  })
})

describe('a body that is too large is answered', () => {
  const megabyte = Buffer.alloc(1024 * 1024, 0x20)

  test('to fetch, with a length', async () => {
    for (let round = 0; round < 5; round++) {
      const answer = await fetch(`${server.polylog.baseUrl}/v1/agent/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.alloc(20 * megabyte.length, 0x20),
      })

      assert.equal(answer.status, 413)
      assert.equal(((await answer.json()) as Json).code, 'body_too_large')
    }
  })

  test('to fetch, in chunks', async () => {
    for (let round = 0; round < 5; round++) {
      let sent = 0
      const body = new ReadableStream({
        pull(controller) {
          sent += 1
          if (sent > 20) controller.close()
          else controller.enqueue(megabyte)
        },
      })
      const answer = await fetch(`${server.polylog.baseUrl}/v1/agent/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        duplex: 'half',
      })

      assert.equal(answer.status, 413)
      assert.equal(((await answer.json()) as Json).code, 'body_too_large')
    }
  })

  test('to a client that sends everything before it reads, also one that wants the connection closed', async () => {
    for (const connection of ['keep-alive', 'close']) {
      const socket = dial()
      const received = collect(socket)
      socket.write(`POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\nconnection: ${connection}\r\n`)
      socket.write(`content-type: application/json\r\ncontent-length: ${20 * megabyte.length}\r\n\r\n`)
      socket.pause()
      for (let sent = 0; sent < 20; sent++) await write(socket, megabyte)
      socket.resume()
      if (connection === 'keep-alive') {
        // The connection is good for another request.
        await received.until(/413/)
        socket.write('GET /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
      }
      await received.closed()

      assert.match(received.text(), /^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/)
      if (connection === 'keep-alive') assert.match(received.text(), /HTTP\/1\.1 200 /)
      assert.equal(received.error(), undefined)
    }
  })

  test('to a client that sends Expect first: it never sends the body', async () => {
    const answer = await raw(
      `POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: ${20 * megabyte.length}\r\n\r\n`,
    )

    assert.match(answer, /^HTTP\/1\.1 413 /)
    assert.match(answer, /connection: close/i)
  })

  test('a body that fits is asked for', async () => {
    const body = JSON.stringify({ title: 'hello' })
    const socket = dial()
    const received = collect(socket)
    socket.write(
      `POST /v1/conversations HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    await received.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
    socket.write(body)
    await received.closed()

    assert.match(received.text(), /HTTP\/1\.1 200 [\s\S]*"title":"hello"/)
  })

  test('a client that never stops sending is cut off, and the server goes on', async () => {
    const socket = dial()
    const received = collect(socket)
    socket.write('POST /v1/agent/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n')
    socket.write('transfer-encoding: chunked\r\n\r\n')
    let sent = 0
    const size = `${megabyte.length.toString(16)}\r\n`
    while (!socket.destroyed && sent < 2000) {
      socket.write(size)
      socket.write(megabyte)
      await write(socket, Buffer.from('\r\n'))
      sent += 1
    }

    assert.match(received.text(), /^HTTP\/1\.1 413 /)
    assert.ok(sent > 60 && sent < 200, `${sent} MiB were taken`)
    assert.equal((await server.call('GET', '/v1/health')).status, 200)
  })
})

const dial = () => dialServer(server.polylog.baseUrl)

/** Sends bytes as they are, and reads until the server closes. */
async function raw(bytes: string): Promise<string> {
  const socket = dial()
  const received = collect(socket)
  socket.write(bytes)
  await received.closed()
  socket.destroy()
  return received.text()
}
