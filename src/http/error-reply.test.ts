import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import { after, before, test } from 'node:test'
import { fastify } from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { pino } from 'pino'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import { errorCodes, type ErrorCode } from '../errors/codes.ts'
import { toErrorBody, frameworkErrors, installErrorReplies, httpStatusOf } from './error-reply.ts'
import { jsonValue } from './json-value.ts'

let logged = ''
const log = pino(
  { level: 'debug' },
  new Writable({
    write(chunk, _encoding, done) {
      logged += String(chunk)
      done()
    },
  }),
)
const server = fastify({ loggerInstance: log, bodyLimit: 2000, frameworkErrors }).withTypeProvider<ZodTypeProvider>()
let base: string

const message = z.object({ role: z.enum(['user', 'assistant']), content: z.string().min(1) })
const chat = z
  .strictObject({
    messages: z.array(message).max(2).optional(),
    prompt: z.string().optional(),
    limit: z.number().int().max(10).optional(),
    link: z.url().optional(),
    input: z.union([z.string(), z.array(z.object({ kind: z.enum(['text', 'file']) }))]).optional(),
    answers: z.array(z.object({ value: jsonValue })).optional(),
  })
  .refine((body) => body.messages !== undefined || body.prompt !== undefined, 'Send messages or a prompt.')

before(async () => {
  server.setValidatorCompiler(validatorCompiler)
  server.setSerializerCompiler(serializerCompiler)
  installErrorReplies(server)
  server.post('/v1/chat', { schema: { body: chat, response: { 200: z.object({ ok: z.boolean() }) } } }, () => ({
    ok: true,
  }))
  server.get('/v1/list', { schema: { querystring: z.object({ limit: z.coerce.number().min(1) }) } }, () => ({}))
  server.get('/v1/items/:id', () => ({}))
  server.get<{ Params: { code: ErrorCode } }>('/v1/throw/:code', (request) => {
    throw new AppError(request.params.code, 'A sentence.', { details: { for: 'people' } })
  })
  server.get('/v1/later', () => {
    throw new AppError('queue_full', 'Later.', { details: { retryAfterSeconds: 17.2 } })
  })
  server.get('/v1/surprise', () => {
    throw new TypeError('secret internals')
  })
  server.get('/v1/upstream-status', () => {
    throw Object.assign(new Error('provider internals'), { statusCode: 401 })
  })
  server.get('/v1/odd', () => {
    throw 'just text'
  })
  server.get(
    '/v1/wrong-answer',
    { schema: { response: { 200: z.object({ ok: z.boolean() }) } } },
    () => ({ ok: 'no' }) as never,
  )
  base = await server.listen({ port: 0, host: '127.0.0.1' })
})

after(() => server.close())

async function call(path: string, options: RequestInit = {}) {
  const response = await fetch(base + path, options)
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

function post(body: unknown, headers: Record<string, string> = { 'content-type': 'application/json' }) {
  return call('/v1/chat', { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) })
}

test('every code has the status of its kind', async () => {
  const expected = {
    invalid: 400,
    unauthenticated: 401,
    forbidden: 403,
    not_found: 404,
    conflict: 409,
    too_large: 413,
    limited: 429,
    upstream: 502,
    unavailable: 503,
    timeout: 504,
    bug: 500,
  }
  for (const [code, kind] of Object.entries(errorCodes) as [ErrorCode, keyof typeof expected][]) {
    const reply = await call(`/v1/throw/${code}`)
    const own: Partial<Record<ErrorCode, number>> = {
      unsupported_media_type: 415,
      headers_too_large: 431,
      client_timed_out: 408,
      request_timeout: 408,
    }
    assert.equal(reply.status, own[code] ?? expected[kind], code)
    assert.deepEqual(reply.body, { code, message: 'A sentence.', details: { for: 'people' } })
    assert.match(reply.headers.get('content-type') ?? '', /^application\/json/)
  }
})

test('a refused login says how to log in', async () => {
  assert.equal((await call('/v1/throw/unauthorized')).headers.get('www-authenticate'), 'Bearer')
})

test('temporary errors say when to retry, the others do not', async () => {
  assert.equal((await call('/v1/throw/rate_limited')).headers.get('retry-after'), '1')
  assert.equal((await call('/v1/throw/store_unavailable')).headers.get('retry-after'), '5')
  assert.equal((await call('/v1/later')).headers.get('retry-after'), '18')
  assert.equal((await call('/v1/throw/run_not_found')).headers.get('retry-after'), null)
})

test('an unexpected error shows a fixed sentence, and the log has everything', async () => {
  for (const [path, inside] of [
    ['/v1/surprise', 'secret internals'],
    ['/v1/upstream-status', 'provider internals'],
    ['/v1/odd', 'just text'],
    ['/v1/wrong-answer', 'match the schema'],
  ] as const) {
    logged = ''
    const reply = await call(path)

    assert.equal(reply.status, 500, path)
    assert.equal(reply.body['code'], 'internal_error')
    assert.doesNotMatch(JSON.stringify(reply.body), /internals|just text|schema/)
    assert.ok(logged.includes(inside), `${path}: ${logged}`)
  }
})

test('an unknown path is answered with JSON in the format of its family', async () => {
  const v1 = await call('/v1/nowhere?x=1')
  const api = await call('/api/nowhere', { method: 'DELETE' })
  const apiRoot = await call('/api?x')
  const other = await call('/nowhere')
  const lookalike = await call('/apis')

  for (const reply of [v1, api, apiRoot, other, lookalike]) assert.equal(reply.status, 404)
  assert.deepEqual(v1.body, { code: 'route_not_found', message: 'There is no GET /v1/nowhere here.' })
  assert.deepEqual(api.body, { error: 'NOT_FOUND', message: 'There is no DELETE /api/nowhere here.' })
  assert.equal(apiRoot.body['error'], 'NOT_FOUND')
  assert.equal(other.body['code'], 'route_not_found')
  assert.equal(lookalike.body['code'], 'route_not_found')
})

test('a body that is too large, no JSON, empty or of another type is refused with its own code', async () => {
  const tooLarge = await post({ prompt: 'x'.repeat(3000) })
  const noJson = await post('{"prompt": ')
  const poisoned = await post('{"__proto__": {"x": 1}, "prompt": "a"}')
  const empty = await post('')
  const xml = await post('<a/>', { 'content-type': 'application/xml' })

  assert.deepEqual([tooLarge.status, tooLarge.body['code']], [413, 'body_too_large'])
  assert.deepEqual([noJson.status, noJson.body['code']], [400, 'invalid_json'])
  assert.deepEqual([poisoned.status, poisoned.body['code']], [400, 'invalid_json'])
  assert.deepEqual([empty.status, empty.body['code']], [400, 'invalid_json'])
  assert.deepEqual([xml.status, xml.body['code']], [415, 'unsupported_media_type'])
})

test('a body that is announced too large is refused before it is sent', async () => {
  const { port } = server.server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'POST /v1/chat HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n',
  )
  const [first] = (await Promise.race([
    new Promise((resolve) => socket.once('data', (data) => resolve([String(data)]))),
    new Promise((resolve) => socket.once('close', () => resolve(['closed without an answer']))),
  ])) as [string]
  socket.destroy()

  assert.match(first, /^HTTP\/1\.1 413 /)
})

test('a refused field is named, with what it must be', async () => {
  const cases: [unknown, string, string][] = [
    [
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'robot', content: 'a' },
        ],
      },
      'messages[1].role',
      '"messages[1].role" must be one of "user", "assistant".',
    ],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content', '"messages[0].content" is missing; it must be a string.'],
    [
      { messages: [{ role: 'user', content: '' }] },
      'messages[0].content',
      '"messages[0].content" must be at least 1 character long.',
    ],
    [{ messages: 'x' }, 'messages', '"messages" must be a list.'],
    [
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'user', content: 'a' },
          { role: 'user', content: 'a' },
        ],
      },
      'messages',
      '"messages" must be a list of at most 2 entries.',
    ],
    [{ prompt: 'a', limit: 1.5 }, 'limit', '"limit" must be a whole number.'],
    [{ prompt: 'a', limit: 11 }, 'limit', '"limit" must be at most 10.'],
    [{ prompt: 'a', link: 'x' }, 'link', '"link" must be a valid url.'],
    [{ prompt: 'a', answers: [{}] }, 'answers[0].value', '"answers[0].value" is missing.'],
    [{ prompt: 'a', input: 1 }, 'input', '"input" must be a string or a list.'],
    [
      { prompt: 'a', input: [{ kind: 'text' }, { kind: 'song' }] },
      'input[1].kind',
      '"input[1].kind" must be one of "text", "file".',
    ],
    [{ prompt: 'a', colour: 1 }, '', 'The body must be without the unknown field "colour".'],
    [{}, '', 'Send messages or a prompt.'],
    [[], '', 'The body must be an object.'],
    ['null', '', 'The body must be an object.'],
  ]
  for (const [body, path, sentence] of cases) {
    const reply = await post(body)
    assert.equal(reply.status, 400)
    assert.deepEqual(reply.body, {
      code: 'invalid_request',
      message: sentence,
      details: { issues: [{ path, message: sentence }] },
    })
  }
})

test('several refused fields are all listed', async () => {
  const reply = await post({ prompt: 1, limit: 'x' })

  assert.equal(reply.body['message'], '"prompt" must be a string. (1 more: see details.issues)')
  assert.deepEqual(
    (reply.body['details'] as { issues: { path: string }[] }).issues.map((issue) => issue.path),
    ['prompt', 'limit'],
  )
})

test('the error for a refused query parameter calls it a query parameter', async () => {
  assert.equal((await call('/v1/list?limit=0')).body['message'], 'The query parameter "limit" must be at least 1.')
  assert.equal((await call('/v1/list')).body['message'], 'The query parameter "limit" is missing; it must be a number.')
})

test('a URL that cannot be read is a clear refusal in our own form', async () => {
  const { port } = server.server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /v1/items/%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  let text = ''
  for await (const chunk of socket) text += String(chunk)

  assert.match(text, /^HTTP\/1\.1 400 /)
  assert.match(text, /"code":"invalid_request"/)
  assert.equal((await call(`/v1/items/${'x'.repeat(500)}`)).status, 404)
})

test('the body follows the longest prefix that is a whole segment', () => {
  const error = new AppError('queue_full', 'Too many.')

  assert.equal(httpStatusOf(error), 429)
  assert.deepEqual(toErrorBody(error, '/api/chat/stream?x=/v1'), { error: 'RATE_LIMITED', message: 'Too many.' })
  assert.deepEqual(toErrorBody(error, '/v1/api/x'), { code: 'queue_full', message: 'Too many.' })
})
