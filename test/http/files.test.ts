// Files: uploading, reading and deleting them, and messages that have files in any shape that
// clients send.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import OpenAI, { toFile } from 'openai'
import { dataUrl, pdf, pngOf } from '../support/sample-files.ts'
import {
  endOf,
  type Json,
  messagesOf as messagesIn,
  someone,
  sharedTestServer,
  startTestServer,
} from '../support/test-server.ts'

const server = sharedTestServer({ POLYLOG_UPLOAD_MAX: '100000', POLYLOG_FILES_MAX: '200000' })

async function send(
  user: string,
  body: NonNullable<RequestInit['body']>,
  headers: Record<string, string> = {},
  name?: string,
): Promise<{ status: number; body: Json }> {
  const url = new URL('/v1/files', server.polylog.baseUrl)
  url.searchParams.set('userId', user)
  if (name !== undefined) url.searchParams.set('name', name)
  const response = await fetch(url, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as Json }
}

function form(bytes: Uint8Array, type: string, name: string, field = 'file'): FormData {
  const data = new FormData()
  data.append('purpose', 'user_data')
  data.append(field, new Blob([new Uint8Array(bytes)], { type }), name)
  return data
}

async function bytesOf(user: string, id: string, suffix = '') {
  const response = await fetch(new URL(`/v1/files/${id}${suffix}?userId=${user}`, server.polylog.baseUrl))
  return { headers: response.headers, status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
}

const messagesOf = async (user: string, conversationId: string) =>
  (await server.call('GET', `/v1/agent/messages?conversationId=${conversationId}`, { user })).body as unknown as Json[]

describe('an upload', () => {
  test('as a form and as the body is the same file, with the type that its bytes have', async () => {
    const user = someone()
    const asForm = await send(user, form(pngOf(), 'text/html', 'photo.png'))
    const asBody = await send(user, pngOf(), { 'content-type': 'application/octet-stream' }, 'photo.png')

    assert.equal(asForm.status, 200, JSON.stringify(asForm.body))
    assert.deepEqual(asBody.body, asForm.body)
    const { name, mediaType, size, sha256 } = asForm.body
    assert.deepEqual([name, mediaType, size], ['photo.png', 'image/png', pngOf().length])
    assert.equal(sha256, createHash('sha256').update(pngOf()).digest('hex'))
  })

  test('can be any text, also JSON', async () => {
    const user = someone()
    const { body } = await send(user, '{"a": 1}', { 'content-type': 'application/json' }, 'a.json')

    assert.equal(body.mediaType, 'application/json')
    assert.equal((await bytesOf(user, body.id)).bytes.toString(), '{"a": 1}')
  })

  test('is refused if it is too large, empty, of no known type or without a file, and when the space is used up', async () => {
    const user = someone()
    const codes = async (body: NonNullable<RequestInit['body']>, headers = {}) => {
      const answer = await send(user, body, headers)
      return [answer.status, answer.body.code]
    }
    const raw = { 'content-type': 'application/octet-stream' }

    assert.deepEqual(await codes(Buffer.alloc(100_001, 'a'), raw), [413, 'body_too_large'])
    assert.deepEqual(await codes(form(Buffer.alloc(100_001, 'a'), 'text/plain', 'a.txt')), [413, 'body_too_large'])
    assert.deepEqual(await codes('', raw), [400, 'file_invalid'])
    assert.deepEqual(await codes(Buffer.from([1, 0, 2]), raw), [400, 'file_type_unsupported'])
    assert.deepEqual(await codes('<html>', { 'content-type': 'image/png' }), [400, 'file_type_unsupported'])
    assert.deepEqual(await codes(form(pngOf(), 'image/png', 'a.png', 'other')), [400, 'upload_part_missing'])
    assert.deepEqual(await codes(Buffer.alloc(90_000, 'a'), raw), [200, undefined])
    assert.deepEqual(await codes(Buffer.alloc(90_000, 'b'), raw), [200, undefined])
    assert.deepEqual(await codes(Buffer.alloc(90_000, 'c'), raw), [413, 'file_storage_full'])
  })

  test('has a clean name', async () => {
    const { body } = await send(someone(), 'x', {}, '../../etc/[a]\nb\u0000.txt')

    assert.equal(body.name, 'a  b .txt')
  })
})

describe('a file', () => {
  test('is sent back with its type, and is never a page of this server', async () => {
    const user = someone()
    const page = await send(user, '<script>1</script>', { 'content-type': 'text/html' }, 'a "page" – ü.html')
    const image = await send(user, pngOf(), {}, 'a.png')
    const drawing = await send(user, '<svg xmlns="x"/>', { 'content-type': 'image/svg+xml' })

    const got = await bytesOf(user, page.body.id)
    assert.equal(got.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.equal(
      got.headers.get('content-disposition'),
      `attachment; filename="a _page_ _ _.html"; filename*=UTF-8''a%20%22page%22%20%E2%80%93%20%C3%BC.html`,
    )
    assert.equal(got.headers.get('x-content-type-options'), 'nosniff')
    assert.match(got.headers.get('content-security-policy') ?? '', /sandbox/)
    const shown = await bytesOf(user, image.body.id, '/content')
    assert.deepEqual(
      [shown.headers.get('content-type'), shown.headers.get('content-disposition')?.split(';')[0]],
      ['image/png', 'inline'],
    )
    assert.ok(shown.bytes.equals(pngOf()))
    const svg = await bytesOf(user, drawing.body.id)
    assert.match(svg.headers.get('content-disposition') ?? '', /^attachment/)
  })

  test('belongs to its owner, and to nobody else', async () => {
    const [user, other] = [someone(), someone()]
    const { body } = await send(user, pngOf())

    assert.equal((await bytesOf(other, body.id)).status, 404)
    assert.equal((await server.call('DELETE', `/v1/files/${body.id}`, { user: other })).status, 404)
    const asked = await server.call('POST', '/v1/agent/chat', {
      user: other,
      body: { userId: other, messages: [{ role: 'user', content: [{ type: 'file', fileId: body.id }] }] },
    })
    assert.deepEqual([asked.status, asked.body.code], [404, 'file_not_found'])
    assert.equal((await bytesOf(user, body.id)).status, 200)
  })

  test('is deleted, unless a message refers to it', async () => {
    const user = someone()
    const [used, unused] = [await send(user, pngOf(1)), await send(user, pngOf(2))]
    const content = [{ type: 'file', fileId: used.body.id }]
    await server.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

    const removed = await server.call('DELETE', `/v1/files/${unused.body.id}`, { user })
    const kept = await server.call('DELETE', `/v1/files/${used.body.id}`, { user })

    assert.deepEqual(removed.body, { id: unused.body.id, object: 'file', deleted: true })
    assert.deepEqual([kept.status, kept.body.code], [409, 'file_in_use'])
    assert.equal((await server.call('GET', `/v1/files/${unused.body.id}`, { user })).status, 404)
    await server.call('DELETE', '/v1/agent/messages?conversationId=c', { user })
    assert.equal((await server.call('DELETE', `/v1/files/${used.body.id}`, { user })).status, 200)
  })

  test('can be sent, listed, read and deleted with OpenAI’s client', async () => {
    const user = someone()
    const client = new OpenAI({
      apiKey: 'none',
      baseURL: `${server.polylog.baseUrl}/v1`,
      defaultQuery: { userId: user },
      fetch: async (url, init) => {
        const headers = new Headers(init?.headers)
        headers.delete('authorization')
        return await fetch(url, { ...init, headers })
      },
    })
    const made = await client.files.create({ file: await toFile(pdf, 'a.pdf'), purpose: 'user_data' })

    assert.deepEqual([made.object, made.filename, made.bytes], ['file', 'a.pdf', pdf.length])
    const listed = await Array.fromAsync(client.files.list())
    assert.deepEqual(
      listed.map(({ id }) => id),
      [made.id],
    )
    assert.deepEqual(await client.files.retrieve(made.id), made)
    const content = await client.files.content(made.id)
    assert.ok(Buffer.from(await content.arrayBuffer()).equals(pdf))
    assert.equal((await client.files.delete(made.id)).deleted, true)
  })
})

describe('a message with files', () => {
  const url = dataUrl('image/png', pngOf(9))
  const base64 = pngOf(9).toString('base64')
  const shapes: Record<string, Json> = {
    'chat completions: image_url': { type: 'image_url', image_url: { url, detail: 'low' } },
    'chat completions: file': { type: 'file', file: { filename: 'p.png', file_data: url } },
    'Responses: input_image': { type: 'input_image', image_url: url },
    'Responses: input_file': { type: 'input_file', filename: 'p.png', file_data: url },
    'AI SDK: image': { type: 'image', image: base64 },
    'AI SDK: file': { type: 'file', data: base64, mediaType: 'image/png', filename: 'p.png' },
    'AI SDK 7: file': {
      type: 'file',
      data: { type: 'data', data: base64 },
      mediaType: 'image/png',
      filename: 'p.png',
    },
    'AI SDK 7: file by URL': { type: 'file', data: { type: 'url', url }, mediaType: 'image/png' },
    'base64 in lines': { type: 'file', data: base64.replace(/.{40}/g, '$&\r\n'), mediaType: 'image/png' },
    'AI SDK: UI part': { type: 'file', mediaType: 'image/png', filename: 'p.png', url },
    'AG-UI: binary': { type: 'binary', mimeType: 'image/png', data: base64 },
    'Anthropic: image': { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
  }
  for (const [name, shape] of Object.entries(shapes)) {
    test(`in the shape of ${name} is stored with its bytes and shown by its name`, async () => {
      const user = someone()
      const content = [{ type: 'text', text: 'What is this?' }, shape]
      const frames = await server.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

      assert.equal(endOf(frames).status, 'succeeded')
      const [asked] = await messagesOf(user, 'c')
      const file = asked?.parts[1]
      const label = file.name === undefined ? 'image/png' : 'p.png, image/png'
      assert.equal(asked?.content, `What is this?\n[${label}, ${pngOf(9).length} B]`)
      assert.deepEqual([asked?.parts[0], file.type, file.mediaType], [content[0], 'file', 'image/png'])
      assert.ok((await bytesOf(user, file.fileId)).bytes.equals(pngOf(9)))
    })
  }

  test('can have a text file as plain text', async () => {
    const user = someone()
    const content = [
      { type: 'file', data: { type: 'text', text: 'één' }, mediaType: 'text/markdown', filename: 'a.md' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'two words' } },
    ]
    await server.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

    const [asked] = await messagesOf(user, 'c')
    assert.equal(asked?.content, '[a.md, text/markdown, 5 B]\n[text/plain, 9 B]')
    assert.equal((await bytesOf(user, asked?.parts[1].fileId)).bytes.toString(), 'two words')
  })

  test('can refer to an upload by its id or its URL, and needs no text', async () => {
    const user = someone()
    const { body } = await send(user, pdf, {}, 'a.pdf')
    const parts = [
      { type: 'file', fileId: body.id },
      { type: 'input_file', file_id: body.id },
      { type: 'file', file: { file_id: body.id } },
      { type: 'file', mediaType: 'application/pdf', url: `/v1/files/${body.id}` },
    ]
    for (const [index, part] of parts.entries()) {
      const conversationId = `c${index}`
      await server.chatToEnd(user, { messages: [{ role: 'user', content: [part] }], conversationId })
      const [asked] = await messagesOf(user, conversationId)
      assert.deepEqual(asked?.parts, [
        { type: 'file', fileId: body.id, mediaType: 'application/pdf', name: 'a.pdf', size: pdf.length },
      ])
    }
  })

  test('of only text is a plain message', async () => {
    const user = someone()
    const content = [
      { type: 'text', text: 'one ' },
      { type: 'input_text', text: 'two' },
    ]
    await server.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

    const [asked] = await messagesOf(user, 'c')
    assert.deepEqual([asked?.content, asked?.parts], ['one two', undefined])
  })

  test('is refused with a clear code if it cannot be read, and nothing is accepted', async () => {
    const user = someone()
    const cases: [Json, string][] = [
      [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }, 'file_url_refused'],
      [{ type: 'file', data: 'file:///etc/passwd', mediaType: 'text/plain' }, 'file_url_refused'],
      [{ type: 'file', data: 'no base64 !', mediaType: 'text/plain' }, 'file_invalid'],
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64' } }, 'file_invalid'],
      [
        { type: 'image', image: Buffer.from('hello').toString('base64'), mediaType: 'image/png' },
        'file_type_unsupported',
      ],
      [{ type: 'file', data: Buffer.alloc(100_001, 'a').toString('base64') }, 'file_too_large'],
      [{ type: 'file', fileId: 'file_unknown' }, 'file_not_found'],
      [{ type: 'video_url', video_url: { url: 'x' } }, 'unsupported_content'],
      [{ type: 'file' }, 'unsupported_content'],
      [{ type: 'image_url', image_url: 7 }, 'unsupported_content'],
    ]
    for (const [part, code] of cases) {
      const body = { userId: user, messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, part] }] }
      const answer = await server.call('POST', '/v1/agent/chat', { user, body })
      assert.equal(answer.body.code, code, JSON.stringify(part).slice(0, 100))
    }
    const many = Array.from({ length: 21 }, () => ({ type: 'image_url', image_url: { url } }))
    const answer = await server.call('POST', '/v1/agent/chat', {
      user,
      body: { userId: user, messages: [{ role: 'user', content: many }] },
    })
    assert.equal(answer.body.code, 'unsupported_content')
    assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
    assert.deepEqual((await server.call('GET', '/v1/files', { user })).body.data, [])
  })

  test('in a history that the client sends is stored only with a conversation that is new', async () => {
    const user = someone()
    const messages = (shade: number) => [
      { role: 'user', content: [{ type: 'image', image: pngOf(shade).toString('base64') }] },
      { role: 'assistant', content: 'a picture' },
      { role: 'user', content: 'really?' },
    ]
    await server.chatToEnd(user, { messages: messages(1), conversationId: 'c' })
    await server.chatToEnd(user, { messages: messages(2), conversationId: 'c' })

    const stored = await messagesOf(user, 'c')
    assert.deepEqual(
      stored.map(({ role, parts }) => [role, parts?.length]),
      [
        ['user', 1],
        ['assistant', undefined],
        ['user', undefined],
        ['assistant', undefined],
        ['user', undefined],
        ['assistant', undefined],
      ],
    )
    assert.equal((await server.call('GET', '/v1/files', { user })).body.data.length, 1)
  })

  test('gives the conversation a title of its words', async () => {
    const user = someone()
    const content = [
      { type: 'image_url', image_url: { url } },
      { type: 'text', text: 'Who is this?' },
    ]
    await server.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

    assert.equal((await server.call('GET', '/v1/conversations/c', { user })).body.title, 'Who is this?')
  })
})

test('a file is fetched from a URL if the operator allows its host', async () => {
  const web = http.createServer((_request, response) => response.end(pngOf(77)))
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(web.address() as AddressInfo).port}`
  const open = await startTestServer({ POLYLOG_FETCH_URLS: `http://${host}` })
  try {
    const user = someone()
    const content = [{ type: 'image_url', image_url: { url: `http://${host}/pixel.png` } }]
    await open.chatToEnd(user, { messages: [{ role: 'user', content }], conversationId: 'c' })

    const stored = (await open.call('GET', '/v1/agent/messages?conversationId=c', { user })).body as unknown as Json[]
    assert.equal(stored[0]?.content, `[pixel.png, image/png, ${pngOf(77).length} B]`)
    const [request] = await open.asked('')
    assert.deepEqual(messagesIn(request).at(-1)?.content, [
      { type: 'image_url', image_url: { url: dataUrl('image/png', pngOf(77)) } },
    ])
    const refused = await open.call('POST', '/v1/agent/chat', {
      user,
      body: { messages: [{ role: 'user', content: [{ type: 'image', image: 'http://127.0.0.1:1/x.png' }] }] },
    })
    assert.equal(refused.body.code, 'file_url_refused')
  } finally {
    await open.close()
    web.close()
  }
})

test('the commands of docs/files.md do what it says', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/files.md'), 'utf8')
  const folder = mkdtempSync(join(tmpdir(), 'polylog-files-'))
  writeFileSync(join(folder, 'photo.png'), pngOf())
  const user = someone('ann')
  const commands = [...page.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, text = '']) =>
    text.replaceAll('http://127.0.0.1:3000', server.polylog.baseUrl).replaceAll('userId=ann', `userId=${user}`),
  )

  assert.ok(commands.length >= 2)
  for (const command of commands) {
    const { stdout } = await promisify(execFile)('bash', ['-e', '-c', command], { cwd: folder })
    const { mediaType, name } = JSON.parse(stdout) as Json
    assert.deepEqual([mediaType, name], ['image/png', 'photo.png'], command)
  }
  const shown = JSON.parse(/^```json\n(\{\n.*?)^```$/ms.exec(page)?.[1] ?? '') as Json
  const { body } = await server.call('GET', '/v1/files', { user })
  const question = JSON.parse(JSON.stringify({ ...shown, userId: user }).replaceAll('file_01M7…', body.data[0].id))
  assert.equal(endOf(await server.chatToEnd(user, question)).status, 'succeeded')
  rmSync(folder, { recursive: true })
})
