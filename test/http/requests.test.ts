// What a request may look like: sizes, types, ids, JSON, addresses. A wrong request gets a
// status, a stable code and a sentence, as JSON, and changes nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { callServer, endOf, type Json, someone, sharedTestServer } from '../support/test-server.ts'
import { startPolylog } from '../support/polylog.ts'
import { collect, dialServer, write } from '../support/raw-socket.ts'

const server = sharedTestServer({ POLYLOG_BODY_MAX: '4096' })

const chat = (body: unknown, user = someone()) => server.call('POST', '/v1/agent/chat', { user, body })

describe('the body', () => {
  test('one that is too large is 413', async () => {
    const answer = await chat({ input: 'x'.repeat(5000) })

    assert.deepEqual([answer.status, answer.body.code], [413, 'body_too_large'])
  })

  test('one of another type is 415', async () => {
    for (const type of ['text/plain', 'application/xml', 'multipart/form-data; boundary=x']) {
      const answer = await server.call('POST', '/v1/agent/chat', {
        raw: '{"input":"hi"}',
        headers: { 'content-type': type },
      })

      assert.deepEqual([answer.status, answer.body.code], [415, 'unsupported_media_type'], type)
    }
  })

  test('one that is compressed is 415, with a sentence about the encoding', async () => {
    for (const encoding of ['gzip', 'br', 'identity, deflate']) {
      const answer = await server.call('POST', '/v1/agent/chat', {
        raw: '{"input":"hi"}',
        headers: { 'content-encoding': encoding },
      })

      assert.deepEqual([answer.status, answer.body.code], [415, 'unsupported_media_type'], encoding)
      assert.match(answer.body.message, /Content-Encoding .*uncompressed/)
    }
  })

  test('JSON with a charset is JSON', async () => {
    const answer = await server.call('POST', '/v1/agent/chat', {
      raw: '{"input":"hi"}',
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })

    assert.equal(answer.status, 200)
  })

  test('one that is not UTF-8 is 400: no character of a message is lost without a word', async () => {
    for (const [type, raw] of [
      ['application/json', Buffer.from('{"input":"caf\u00e9"}', 'latin1')],
      ['application/json; charset=utf-16', Buffer.from('\ufeff{"input":"caf\u00e9"}', 'utf16le')],
    ] as const) {
      const answer = await fetch(`${server.polylog.baseUrl}/v1/agent/chat`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: raw,
      })

      assert.equal(answer.status, 400, type)
      const body = (await answer.json()) as Json
      assert.equal(body.code, 'invalid_json')
      assert.match(String(body.message), /UTF-8/)
    }
  })

  test('one that is not JSON, or not an object, is 400', async () => {
    for (const raw of ['{', '{"input":}', 'hello', '{"input":"hi"} trailing']) {
      const answer = await server.call('POST', '/v1/agent/chat', { raw })
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_json'], raw)
    }
    for (const raw of ['[]', '"hi"', '7', 'null', '']) {
      const answer = await server.call('POST', '/v1/agent/chat', {
        raw,
        headers: { 'content-type': 'application/json' },
      })
      assert.equal(answer.status, 400, raw)
      assert.equal(answer.body.code, 'invalid_request')
    }
  })

  test('fields of the wrong type are 400, and the sentence names the field', async () => {
    const wrong: [string, Json][] = [
      ['input', { input: 7 }],
      ['prompt', { prompt: ['hi'] }],
      ['messages', { messages: 'hi' }],
      ['messages', { messages: [{ role: 'wizard', content: 'hi' }] }],
      ['messages', { messages: [{ content: 'hi' }] }],
      ['messages', { messages: [{ role: 'user', content: 7 }] }],
      ['messages', { messages: ['hi'] }],
      ['context', { input: 'hi', context: 'here' }],
      ['context', { input: 'hi', context: [] }],
      ['model', { input: 'hi', model: 7 }],
      ['temperature', { input: 'hi', temperature: 'hot' }],
      ['temperature', { input: 'hi', temperature: 3 }],
      ['maxTokens', { input: 'hi', maxTokens: 0 }],
      ['max_tokens', { input: 'hi', max_tokens: 1.5 }],
      ['conversationId', { input: 'hi', conversationId: 7 }],
      ['sessionId', { input: 'hi', sessionId: {} }],
      ['whenBusy', { input: 'hi', whenBusy: 'panic' }],
      ['onDisconnect', { input: 'hi', onDisconnect: true }],
    ]
    for (const [field, body] of wrong) {
      const user = someone()
      const answer = await chat(body, user)

      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body))
      assert.match(answer.body.message, new RegExp(field))
      assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
    }
  })

  test('null means "not given"; unknown fields are ignored', async () => {
    const user = someone()

    const frames = await server.chatToEnd(user, {
      input: `hi ${user}`,
      messages: null,
      prompt: null,
      context: null,
      model: null,
      temperature: null,
      maxTokens: null,
      max_tokens: null,
      conversationId: null,
      sessionId: null,
      agentId: null,
      whenBusy: null,
      onDisconnect: null,
      somethingElse: { deep: [1] },
    })

    assert.equal(endOf(frames).status, 'succeeded')
  })

  test('an agent that does not exist is 404', async () => {
    const answer = await chat({ input: 'hi', agentId: 'nobody' })

    assert.deepEqual([answer.status, answer.body.code], [404, 'agent_not_found'])
  })

  test('keys that would change prototypes are refused or harmless', async () => {
    for (const raw of [
      '{"input":"hi","__proto__":{"polluted":true}}',
      '{"input":"hi","context":{"__proto__":{"polluted":true}}}',
      '{"input":"hi","constructor":{"prototype":{"polluted":true}}}',
      '{"input":"hi","context":{"constructor":{"prototype":{"polluted":true}}}}',
      '{"input":"hi","context":{"composer":{"__proto__":{"enabledTools":[]}}}}',
    ]) {
      const answer = await server.call('POST', '/v1/agent/chat', { raw, user: someone() })
      assert.equal(answer.status, 400, raw)
    }
    const user = someone()
    const frames = await server.chatToEnd(user, {
      input: user,
      context: { toString: 'x', hasOwnProperty: 'y', valueOf: 1 },
    })
    assert.equal(endOf(frames).status, 'succeeded')
    const health = await server.call('GET', '/v1/health')
    assert.equal('polluted' in health.body, false)
  })

  test('texts in any script, and odd characters, come back as they were sent', async () => {
    const user = someone()
    const input = `${user} 你好 🎉 \u0000 \u2028 \u2029 "quotes" \\ </script> \r\n\r\n id: 9\nevent: fake\ndata: {}`
    const frames = await server.chatToEnd(user, { input, conversationId: `conv-${user}` })

    const { body } = await server.call('GET', `/v1/conversations/conv-${user}/messages`, { user })

    assert.equal(frames[0]?.json.data.input, input)
    assert.equal((body as unknown as Json[])[0]?.content, input)
    assert.equal(
      frames.some(({ event }) => event === 'fake'),
      false,
    )
  })

  test('half a surrogate pair is taken without harm to anything', async () => {
    const user = someone()
    const answer = await server.call('POST', '/v1/agent/chat', { user, raw: `{"input":"half \\ud83d ${user}"}` })

    assert.equal(answer.status, 200)
    assert.match(answer.text, /"status":"succeeded"/)
  })
})

describe('ids', () => {
  test('an id of 200 characters is fine, a longer one is 400 in a body', async () => {
    const fits = await chat({ input: 'hi', conversationId: `${someone()}${'c'.repeat(200)}`.slice(0, 200) })
    const tooLong = await chat({ input: 'hi', conversationId: 'c'.repeat(201) })

    assert.equal(fits.status, 200)
    assert.deepEqual([tooLong.status, tooLong.body.code], [400, 'invalid_request'])
  })

  test('an invalid id in an address is refused as JSON', async () => {
    for (const length of [201, 600, 5000]) {
      for (const path of ['/v1/agent/runs/', '/v1/conversations/', '/v1/tool-confirmations/']) {
        const answer = await server.call('GET', `${path}${'i'.repeat(length)}`, { user: someone() })

        assert.ok([400, 404].includes(answer.status), `${path} ${length}: ${answer.status}`)
        assert.equal(typeof answer.body.code, 'string')
      }
    }
  })

  test('ids with any characters work, encoded in addresses and headers', async () => {
    for (const id of ['a b', 'a/b', 'ключ', "x'; DROP TABLE runs;--", '%', '../../etc', 'a?b#c']) {
      const user = someone()
      const conversationId = `${id} ${user}`
      const frames = await server.chatToEnd(user, { input: 'hi', conversationId })

      const answer = await server.call('GET', `/v1/conversations/${encodeURIComponent(conversationId)}/messages`, {
        user,
      })

      assert.equal(frames[0]?.json.data.conversationId, conversationId)
      assert.equal(answer.status, 200, id)
      assert.equal((answer.body as unknown as Json[]).length, 2)
    }
  })
})

describe('addresses', () => {
  test('what is not there is a JSON 404 that names method and path', async () => {
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['GET', '/assets/nothing.js'],
      ['POST', '/'],
      ['GET', '/v1'],
      ['GET', '/v1/nothing'],
      ['POST', '/v1/agent/nothing'],
      ['DELETE', '/v1/agent/chat'],
      ['PUT', '/v1/agent/chat'],
      ['PUT', '/v1/conversations'],
    ] as const) {
      const answer = await server.call(method, path)

      assert.equal(answer.status, 404, `${method} ${path}`)
      assert.equal(answer.body.code, 'route_not_found')
      assert.ok(answer.body.message.includes(`${method} ${path}`))
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    }
  })

  test('what no HTTP library would send is answered with a code, too', async () => {
    const host = `host: ${new URL(server.polylog.baseUrl).host}\r\nconnection: close\r\n`
    for (const [lines, status, code] of [
      [`QUERY /v1/health HTTP/1.1\r\n${host}\r\n`, 415, 'unsupported_media_type'],
      [`GET /assets/%00 HTTP/1.1\r\n${host}\r\n`, 404, 'route_not_found'],
      [`CONNECT elsewhere:443 HTTP/1.1\r\n${host}\r\n`, 400, 'invalid_request'],
      [`GET /v1/nothing HTTP/1.1\r\n${host}expect: something\r\n\r\n`, 404, 'route_not_found'],
      [`GET /v1/health HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(300)}\r\n`, 431, 'headers_too_large'],
    ] as const) {
      const socket = dialServer(server.polylog.baseUrl)
      const received = collect(socket)
      await write(socket, lines)
      await received.closed()

      assert.match(received.text(), new RegExp(`^HTTP/1\\.1 ${status} `), lines.slice(0, 40))
      assert.match(received.text(), new RegExp(`"code":"${code}"`))
      socket.destroy()
    }
  })

  test('under /api a 404 has that family’s shape', async () => {
    const answer = await server.call('GET', '/api/nothing')

    assert.equal(answer.status, 404)
    assert.equal(answer.body.error, 'NOT_FOUND')
    assert.equal(typeof answer.body.message, 'string')
  })

  test('an address that cannot be decoded is 400', async () => {
    const answer = await server.call('GET', '/v1/conversations/%zz')

    assert.equal(answer.status, 400)
    assert.equal(answer.body.code, 'invalid_request')
  })

  test('the API describes itself, its errors have code and message, and a page shows it', async () => {
    const { status, body } = await server.call('GET', '/openapi.json')
    const docs = await server.call('GET', '/docs')

    assert.equal(status, 200)
    assert.ok(Object.keys(body.paths).includes('/v1/agent/chat'))
    const { required } = body.components.schemas.Error
    assert.ok(required.includes('code') && required.includes('message'))
    // The page is drawn by its script from this description.
    assert.equal(docs.status, 200)
    assert.match(docs.headers.get('content-type') ?? '', /text\/html/)
    assert.match(docs.text, /"\/openapi\.json"/)
  })
})

describe('rate limit', () => {
  test('too many requests are 429 with Retry-After; each caller has an own count, and health does not count', async () => {
    const keys = { ann: 'key-of-ann', bob: 'key-of-bob' }
    const polylog = await startPolylog({
      POLYLOG_RATE_LIMIT: '4',
      POLYLOG_API_KEYS: apiKeysSetting(keys),
      POLYLOG_AUTH: 'required',
    })
    try {
      const ask = (key: string) =>
        callServer(polylog.baseUrl, 'GET', '/v1/conversations', { headers: { 'x-api-key': key } })
      const statuses = []
      for (let index = 0; index < 5; index++) statuses.push((await ask(keys.ann)).status)
      const refused = await ask(keys.ann)
      const other = await ask(keys.bob)
      const health = await callServer(polylog.baseUrl, 'GET', '/v1/health', { headers: { 'x-api-key': keys.ann } })

      assert.deepEqual(statuses, [200, 200, 200, 200, 429])
      assert.equal(refused.body.code, 'rate_limited')
      const seconds = Number(refused.headers.get('retry-after'))
      assert.ok(seconds >= 1 && seconds <= 60)
      assert.equal(other.status, 200)
      assert.equal(health.status, 200)
    } finally {
      await polylog.dispose()
    }
  })
})
