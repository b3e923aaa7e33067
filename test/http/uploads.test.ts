// The bytes of an upload: the body is not read if the job does not expect one, the bytes are
// bounded for each request and in total, and a refused upload gets its answer.

import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { type Json, someone, until } from '../support/test-server.ts'
import { errand, jobOf, upload, zipped, sharedJobServer } from '../support/jobs.ts'
import { collect, dialServer, type Received, write } from '../support/raw-socket.ts'

const fileBytes = 1024 * 1024
const { server } = sharedJobServer({ POLYLOG_UPLOAD_MAX: String(fileBytes) })

async function waitingJob(user = someone()): Promise<{ user: string; path: string }> {
  const { body } = await server.call('POST', '/v1/temp-skill-runs', { user, body: {} })
  return { user, path: `/v1/temp-skill-runs/${String(body.request_id)}` }
}

type Sending = { socket: Socket; received: Received }

/** The headers of an upload, with `headers` that say how long it is; the body is the caller's to send. */
function begin(path: string, user: string, ...headers: string[]): Sending {
  const socket = dialServer(server.polylog.baseUrl)
  const received = collect(socket)
  const lines = [
    `POST ${path}/upload?userId=${user} HTTP/1.1`,
    'host: localhost',
    'content-type: multipart/form-data; boundary=line',
    ...headers,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  return { socket, received }
}

const partHead = (name: string) => `--line\r\ncontent-disposition: form-data; name="${name}"; filename="a.zip"\r\n\r\n`
const formEnd = '\r\n--line--\r\n'

describe('an upload that is not expected', () => {
  test('is refused before its body is read: of an unknown job, of another user’s, of one that has started', async () => {
    const { path } = await waitingJob()
    const started = await waitingJob()
    const sent = await upload(server, started.path, started.user, { skill_package: zipped(errand()) })
    assert.equal(sent.status, 200)
    for (const [at, user, status, code] of [
      ['/v1/temp-skill-runs/nothing', someone(), 404, 'job_not_found'],
      [path, someone(), 404, 'job_not_found'],
      [started.path, started.user, 400, 'job_already_started'],
    ] as const) {
      const { socket, received } = begin(at, user, `content-length: ${fileBytes}`)
      // Not a byte of the body has been sent.
      await received.until(/\}$/)
      socket.destroy()

      assert.match(received.text(), new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*"code":"${code}"`))
    }
  })

  test('is not asked for when the client waits to be asked; one that is wanted is', async () => {
    const refused = begin('/v1/jobs/nothing', someone(), 'expect: 100-continue', `content-length: ${fileBytes}`)
    await refused.received.closed()
    assert.match(refused.received.text(), /^HTTP\/1\.1 404 /)

    const { path, user } = await waitingJob()
    const body = Buffer.concat([Buffer.from(partHead('skill_package')), zipped(errand()), Buffer.from(formEnd)])
    const wanted = begin(path, user, 'expect: 100-continue', `content-length: ${body.length}`)
    await wanted.received.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
    wanted.socket.write(body)
    await wanted.received.until(/HTTP\/1\.1 200 [\s\S]*\}$/)
    wanted.socket.destroy()
  })
})

test('an upload that is no form is 415, with a sentence that says what to send', async () => {
  const { path, user } = await waitingJob()
  for (const type of ['application/zip', 'application/x-www-form-urlencoded', 'application/json']) {
    const answer = await server.call('POST', `${path}/upload`, { user, raw: '{}', headers: { 'content-type': type } })

    assert.deepEqual([answer.status, answer.body.code], [415, 'unsupported_media_type'], type)
    assert.match(answer.body.message, /multipart\/form-data/, type)
  }
})

describe('an upload that is too large', () => {
  test('is 413 at once if its length says so', async () => {
    const { path, user } = await waitingJob()
    const { socket, received } = begin(path, user, `content-length: ${3 * fileBytes}`)
    await received.until(/\}$/)
    socket.destroy()

    assert.match(received.text(), /^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/)
  })

  test('is 413 as soon as a file is, and the job can still be started', async () => {
    const { path, user } = await waitingJob()
    const { socket, received } = begin(path, user, 'transfer-encoding: chunked')
    const chunk = async (bytes: Buffer) => {
      await write(socket, `${bytes.length.toString(16)}\r\n`)
      await write(socket, bytes)
      await write(socket, '\r\n')
    }
    await chunk(Buffer.from(partHead('skill_package')))
    await chunk(Buffer.alloc(fileBytes + 1))
    // The form has not ended.
    await received.until(/\}$/)
    socket.destroy()

    assert.match(received.text(), /^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/)
    assert.equal((await upload(server, path, user, { skill_package: zipped(errand()) })).status, 200)
  })

  test('is 413 for a client that sends all of it', async () => {
    const { path, user } = await waitingJob()
    const answer = await upload(server, path, user, { skill_package: Buffer.alloc(20 * fileBytes) })

    assert.deepEqual([answer.status, answer.body.code], [413, 'body_too_large'])
  })
})

describe('the form', () => {
  async function send(fill: (form: FormData) => void): Promise<{ status: number; body: Json }> {
    const { path, user } = await waitingJob()
    const form = new FormData()
    fill(form)
    const response = await fetch(`${server.polylog.baseUrl}${path}/upload?userId=${user}`, {
      method: 'POST',
      body: form,
    })
    return { status: response.status, body: (await response.json()) as Json }
  }
  const skill = () => new Blob([new Uint8Array(zipped(errand()))])

  test('may have a few fields beside its files', async () => {
    const answer = await send((form) => {
      form.set('note', 'hello')
      form.set('skill_package', skill(), 'a.zip')
    })

    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  })

  test('with too many fields, too many files, or two of a name is 400', async () => {
    const answers = [
      await send((form) => {
        for (let at = 0; at < 100; at++) form.set(`field${at}`, 'x')
        form.set('skill_package', skill(), 'a.zip')
      }),
      await send((form) => {
        for (let at = 0; at < 5; at++) form.set(`file${at}`, skill(), 'a.zip')
      }),
      await send((form) => {
        form.append('skill_package', skill(), 'a.zip')
        form.append('skill_package', skill(), 'b.zip')
      }),
    ]

    for (const answer of answers) assert.deepEqual([answer.status, answer.body.code], [400, 'upload_invalid'])
  })

  test('that is broken off or is none is 400, and the job can still be started', async () => {
    const { path, user } = await waitingJob()
    for (const body of ['nonsense', partHead('skill_package'), '--line\r\n\r\n--line--', '']) {
      const { socket, received } = begin(path, user, `content-length: ${body.length}`)
      socket.write(body)
      await received.until(/\}$/)
      socket.destroy()
      assert.match(received.text(), /^HTTP\/1\.1 400 [\s\S]*"code":"upload_(invalid|part_missing)"/, body)
    }
    assert.equal((await upload(server, path, user, { skill_package: zipped(errand()) })).status, 200)
  })

  test('that its client breaks off frees what it held', async () => {
    for (let round = 0; round < 30; round++) {
      const { path, user } = await waitingJob()
      const { socket } = begin(path, user, `content-length: ${fileBytes}`)
      await write(socket, partHead('skill_package'))
      await server.call('GET', '/v1/health')
      await server.call('GET', '/v1/health')
      socket.destroy()
    }
    const { path, user } = await waitingJob()
    const large = Buffer.alloc(fileBytes - 1024)
    const answer = await until('room', async () => {
      const sent = await upload(server, path, user, { skill_package: large, file: large })
      return sent.status === 503 ? undefined : sent
    })
    assert.deepEqual([answer.status, answer.body.code], [400, 'archive_invalid'])
    assert.doesNotMatch(server.polylog.log(), /"level":"error"/)
  })
})

async function uploadUntilRefused(): Promise<{ open: Sending[]; refused: Sending }> {
  const open: Sending[] = []
  for (;;) {
    assert.ok(open.length < 20, 'no upload was refused')
    const { path, user } = await waitingJob()
    const sending = begin(path, user, `content-length: ${fileBytes}`)
    await write(sending.socket, partHead('skill_package'))
    // A request of the same connection would wait for its answer; a request of another connection shows that the first was read.
    await server.call('GET', '/v1/health')
    await server.call('GET', '/v1/health')
    if (sending.received.text() !== '') return { open, refused: sending }
    open.push(sending)
  }
}

test('uploads at the same time share a bound in bytes: one more is 503 with Retry-After, and there is room when one ends', async () => {
  // The uploads that the tests before broke off may still hold their bytes for a moment.
  const { open, refused } = await until('room for four uploads', async () => {
    const tried = await uploadUntilRefused()
    if (tried.open.length >= 4) return tried
    for (const { socket } of [...tried.open, tried.refused]) socket.destroy()
    return undefined
  })
  await refused.received.until(/\}$/)
  refused.socket.destroy()
  assert.match(refused.received.text(), /^HTTP\/1\.1 503 [\s\S]*"code":"uploads_busy"/)
  assert.match(refused.received.text(), /retry-after: \d/i)

  for (const { socket } of open) socket.destroy()
  const { path, user } = await waitingJob()
  await until('room', async () => {
    const answer = await upload(server, path, user, { skill_package: zipped(errand()) })
    return answer.status === 200 ? answer : undefined
  })
})

test('jobs that wait for their upload count against a bound for each user; one that is cancelled makes room', async () => {
  const user = someone()
  const create = (who: string) => server.call('POST', '/v1/temp-skill-runs', { user: who, body: {} })
  const ids: string[] = []
  for (let count = 0; count < 256; count++) ids.push(String((await create(user)).body.request_id))

  const refused = await create(user)
  const other = await create(someone())
  await jobOf(server, 'temp-skill-runs', user, ids[0] ?? '').post('/cancel')
  const again = await create(user)

  assert.deepEqual([refused.status, refused.body.code], [429, 'jobs_awaiting_upload'])
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  assert.equal(other.status, 200)
  assert.equal(again.status, 200)
})
