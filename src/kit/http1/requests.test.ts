// Requests over real sockets: what both ways to send them promise, and what connections of our own do besides.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { until } from '../../../test/support/until.ts'
import { AgentRequests } from './agent-requests.ts'
import { type DirectOptions, DirectRequests } from './direct-requests.ts'
import type { Exchange, ExchangeReceiver, Requests } from './exchange.ts'
import type { ResponseHead } from './response-parser.ts'

let server: Server | undefined
let connections: Socket[] = []

/** Resolves with the address. */
async function listen(created: Server, event = 'connection', host = '127.0.0.1'): Promise<URL> {
  server = created
  connections = []
  created.on(event, (socket: Socket) => {
    connections.push(socket)
    socket.on('error', () => {})
  })
  created.listen(0, '127.0.0.1')
  await once(created, 'listening')
  const scheme = event === 'secureConnection' ? 'https' : 'http'
  return new URL(`${scheme}://${host}:${(created.address() as AddressInfo).port}/v1/ask?x=1`)
}

const serve = (listener: http.RequestListener) => listen(http.createServer(listener))
/** Answers every connection with these bytes, when it has sent something. */
const serveRaw = (answer: (socket: Socket) => void) =>
  listen(createServer((socket) => void socket.once('data', () => answer(socket))))

afterEach(() => {
  server?.close()
  for (const socket of connections) socket.destroy()
})

class Received implements ExchangeReceiver {
  response: ResponseHead | undefined
  text = ''
  end: { error: Error | undefined } | undefined

  head(head: ResponseHead): void {
    assert.equal(this.response, undefined)
    this.response = head
  }

  body(bytes: Buffer, from: number, to: number): void {
    assert.equal(this.end, undefined)
    this.text += bytes.toString('latin1', from, to)
  }

  ended(error: Error | undefined): void {
    assert.equal(this.end, undefined)
    this.end = { error }
  }

  async whole(): Promise<this> {
    await until('the end of the response', () => this.end)
    return this
  }
}

function codeOf({ end }: Received): string | undefined {
  const error: NodeJS.ErrnoException | undefined = end?.error
  return error?.code
}

const none = { headers: [['host', 'x']] as const, body: '' }

async function ask(requests: Requests, body = ''): Promise<Received> {
  const received = new Received()
  requests.post({ headers: [['host', 'x']], body }, received)
  return await received.whole()
}

const ways: Record<string, (url: URL) => Requests> = {
  'over connections of our own': (url) => new DirectRequests(url),
  'through an agent of Node': (url) => new AgentRequests(url, {}),
}

for (const [way, open] of Object.entries(ways)) {
  describe(`a request ${way}`, () => {
    test('arrives as it was given, and so does its response', async () => {
      let asked: { head: object; body: string } | undefined
      const url = await serve((request, response) => {
        const { method, url: path, headers } = request
        let body = ''
        request.on('data', (piece: Buffer) => (body += piece.toString()))
        request.on('end', () => {
          asked = { head: { method, path, headers }, body }
          response.writeHead(201, { 'x-a': ['1', '2'], 'content-type': 'text/plain' })
          response.write('one ')
          response.end('two')
        })
      })
      const received = new Received()
      open(url).post(
        {
          headers: [
            ['host', 'a.example'],
            ['authorization', 'Bearer k'],
            ['x-empty', ''],
          ],
          body: '{"a":"ä€😀"}',
        },
        received,
      )
      await received.whole()
      assert.deepEqual(asked, {
        head: {
          method: 'POST',
          path: '/v1/ask?x=1',
          headers: {
            host: 'a.example',
            authorization: 'Bearer k',
            'x-empty': '',
            'content-length': '17',
            connection: 'keep-alive',
          },
        },
        body: '{"a":"ä€😀"}',
      })
      assert.equal(received.response?.status, 201)
      assert.equal(received.response?.headers.get('x-a'), '1, 2')
      assert.equal(received.text, 'one two')
      assert.deepEqual(received.end, { error: undefined })
    })

    test('with a header that could be read as two is refused and not sent', async () => {
      const url = await serve((_, response) => response.end())
      const requests = open(url)
      for (const header of [
        ['x', 'a\r\nb: c'],
        ['x\r\ny', 'a'],
        ['x', 'a\0'],
        ['', 'a'],
      ] as const) {
        assert.throws(() => requests.post({ headers: [header], body: '' }, new Received()), { name: 'TypeError' })
      }
      assert.equal(connections.length, 0)
    })

    test('may say itself what becomes of its connection', async () => {
      const lines: string[] = []
      const url = await serve((request, response) => {
        lines.push(
          ...request.rawHeaders.filter((_, index) => request.rawHeaders[index - 1]?.toLowerCase() === 'connection'),
        )
        response.end('x')
      })
      const received = new Received()
      open(url).post(
        {
          headers: [
            ['host', 'x'],
            ['connection', 'close'],
          ],
          body: '',
        },
        received,
      )
      assert.equal((await received.whole()).text, 'x')
      assert.deepEqual(lines, ['close'])
    })

    test('uses the connection of the one before it', async () => {
      const url = await serve((request, response) => request.resume().on('end', () => response.end('x')))
      const requests = open(url)
      for (let count = 0; count < 3; count++) {
        assert.equal((await ask(requests, 'y'.repeat(count * 100_000))).text, 'x')
        await new Promise(setImmediate)
      }
      assert.equal(connections.length, 1)
    })

    test('has connections of its own if others are busy', async () => {
      const waiting: http.ServerResponse[] = []
      const url = await serve((_, response) => waiting.push(response))
      const requests = open(url)
      const all = [1, 2, 3].map(() => {
        const received = new Received()
        requests.post(none, received)
        return received
      })
      await until('three requests', () => (waiting.length === 3 ? true : undefined))
      for (const response of waiting) response.end('x')
      for (const received of all) await received.whole()
      assert.equal(connections.length, 3)
    })

    for (const [how, answer] of Object.entries({
      'closes the connection at once': (socket: Socket) => socket.end(),
      'breaks the connection': (socket: Socket) => socket.resetAndDestroy(),
      'speaks another protocol': (socket: Socket) => socket.end('220 mail ready\r\n'),
    })) {
      test(`ends with an error if the server ${how}`, async () => {
        const received = await ask(open(await serveRaw(answer)))
        assert.equal(received.response, undefined)
        assert.ok(received.end?.error instanceof Error)
        assert.match(String(codeOf(received)), /^(ECONN|HPE_|HTTP_PROTOCOL)/)
      })
    }

    for (const [how, answer] of Object.entries({
      closes: (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'),
      'closes, within chunks,': (socket: Socket) =>
        socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'),
    })) {
      test(`ends with an error if the server ${how} before the end of the body`, async () => {
        const received = await ask(open(await serveRaw(answer)))
        assert.equal(received.text, 'half')
        assert.ok(received.end?.error instanceof Error)
      })
    }

    test('takes a body that ends with the connection', async () => {
      const url = await serveRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        socket.write('all of ')
        setImmediate(() => socket.end('it'))
      })
      const received = await ask(open(url))
      assert.equal(received.text, 'all of it')
      assert.deepEqual(received.end, { error: undefined })
    })

    test('that cannot be sent ends with the reason', async () => {
      const url = await serve(() => {})
      server?.close()
      await once(server as Server, 'close')
      const received = await ask(open(url))
      assert.equal(codeOf(received), 'ECONNREFUSED')
    })

    test('that is paused makes the server wait, and then gets everything', async () => {
      let written = 0
      const piece = Buffer.alloc(64 * 1024, 'x')
      const total = 1_000
      const url = await serve((request, response) => {
        request.resume()
        const more = () => {
          while (written < total && !response.destroyed) {
            written += 1
            if (!response.write(piece)) return response.once('drain', more)
          }
          return response.end()
        }
        more()
      })
      let bytes = 0
      let ended: { error: Error | undefined } | undefined
      const exchange: Exchange = open(url).post(none, {
        head: () => {},
        body(_, from, to) {
          if (bytes === 0) exchange.pause()
          bytes += to - from
        },
        ended: (error) => (ended = { error }),
      })
      // Standing still is seen by looking until two looks in a row agree.
      const progress = async () => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        return written
      }
      let seen = 0
      for (let now = await progress(); now !== seen; now = await progress()) seen = now
      assert.ok(written < total / 2, `the server could write ${written} of ${total} pieces`)
      assert.ok(bytes < 1024 * 1024, `${bytes} bytes were handed out`)
      exchange.resume()
      await until('the end', () => ended)
      assert.deepEqual({ bytes, ended }, { bytes: total * piece.length, ended: { error: undefined } })
    })

    test('that is destroyed closes its connection and says nothing more', async () => {
      let isClosed = false
      const url = await serve((_, response) => {
        response.on('close', () => (isClosed = true))
        response.write('x')
      })
      const received = new Received()
      const exchange = open(url).post(none, received)
      await until('the first byte', () => (received.text === 'x' ? true : undefined))
      exchange.destroy()
      await until('the end of the connection', () => (isClosed ? true : undefined))
      assert.equal(received.end, undefined)
    })

    test('that is left gives its connection to the next one, when the rest has come', async () => {
      let finish = () => {}
      const url = await serve((_, response) => {
        response.write('x')
        finish = () => void response.end('the rest')
      })
      const requests = open(url)
      const first = new Received()
      const exchange = requests.post(none, first)
      await until('the first byte', () => (first.text === 'x' ? true : undefined))
      exchange.leave()
      finish()
      // The client hears of the end through the connection; it may need some turns.
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
      const second = new Received()
      requests.post(none, second)
      await until('the second answer', () => (second.text === 'x' ? true : undefined))
      finish()
      await second.whole()
      assert.equal(first.end, undefined)
      assert.equal(first.text, 'x')
      assert.equal(connections.length, 1)
    })

    test('that is left while it is paused gives its connection to the next one, too', async () => {
      let finish = () => {}
      const url = await serve((_, response) => {
        response.write('x')
        finish = () => void response.end(Buffer.alloc(50_000))
      })
      const requests = open(url)
      let isPaused = false
      const exchange: Exchange = requests.post(none, {
        head: () => {},
        body() {
          exchange.pause()
          isPaused = true
        },
        ended: () => {},
      })
      await until('the first byte', () => (isPaused ? true : undefined))
      exchange.leave()
      finish()
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
      const second = new Received()
      requests.post(none, second)
      await until('the second answer', () => (second.text === '' ? undefined : true))
      finish()
      await second.whole()
      assert.equal(connections.length, 1)
    })

    test('that is paused at its end does not pause the next one', async () => {
      const requests = open(await serve((_, response) => response.end('x')))
      let isOver = false
      const exchange: Exchange = requests.post(none, {
        head: () => {},
        body: () => exchange.pause(),
        ended: () => (isOver = true),
      })
      // Node's agent does not tell the end of a response that is paused.
      if (way === 'through an agent of Node')
        await until('the pause', () => (connections.length > 0 ? true : undefined))
      else await until('the end', () => (isOver ? true : undefined))
      assert.equal((await ask(requests)).text, 'x')
    })

    test('that is left while the server goes on and on closes its connection', async () => {
      let isClosed = false
      const url = await serve((_, response) => {
        response.on('close', () => (isClosed = true))
        response.write('x')
        const more = () => {
          while (response.write(Buffer.alloc(8_000)) && !response.destroyed);
        }
        response.on('drain', more)
        setImmediate(more)
      })
      const received = new Received()
      const exchange = open(url).post(none, received)
      await until('the first byte', () => (received.text === '' ? undefined : true))
      exchange.leave()
      await until('the end of the connection', () => (isClosed ? true : undefined))
    })
  })
}

describe('connections of our own', () => {
  const direct = (url: URL, options?: DirectOptions) => new DirectRequests(url, options)
  const opened = (count: number) =>
    until(`${count} connections`, () => (connections.length === count ? true : undefined))
  const closed = (socket: Socket | undefined) =>
    until('the end of a connection', () => (socket?.destroyed === true ? true : undefined))
  const ownPort: http.RequestListener = (request, response) => response.end(String(request.socket.remotePort))

  test('one that was opened early is used by the next request, and by one at a time', async () => {
    const requests = direct(await serve(ownPort))
    requests.prepare()
    await opened(1)
    const answers = await Promise.all([ask(requests), ask(requests)])
    assert.equal(connections.length, 2)
    assert.equal(new Set(answers.map(({ text }) => text)).size, 2)
  })

  test('one that is being opened early is used by the next request', async () => {
    const requests = direct(await serve(ownPort))
    requests.prepare()
    requests.prepare()
    await ask(requests)
    requests.prepare()
    await ask(requests)
    assert.equal(connections.length, 1)
  })

  test('one that cannot be opened early leaves the error to the request', async () => {
    const url = await serve(ownPort)
    server?.close()
    await once(server as Server, 'close')
    const requests = direct(url)
    requests.prepare()
    assert.equal(codeOf(await ask(requests)), 'ECONNREFUSED')
    requests.prepare()
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(codeOf(await ask(requests)), 'ECONNREFUSED')
  })

  test('one that the server closed is not used', async () => {
    const url = await serve(ownPort)
    const requests = direct(url)
    await ask(requests)
    connections[0]?.end()
    await closed(connections[0])
    assert.equal((await ask(requests)).end?.error, undefined)
    assert.equal(connections.length, 2)
  })

  test('one that waits for too long is closed', async () => {
    const requests = direct(await serve(ownPort), { idleMsMax: 20 })
    await ask(requests)
    await closed(connections[0])
    assert.equal((await ask(requests)).end?.error, undefined)
  })

  test('one that the server keeps open for a second only is not used', async () => {
    const requests = direct(
      await serve((_, response) => response.writeHead(200, { 'keep-alive': 'timeout=1' }).end('x')),
    )
    await ask(requests)
    await ask(requests)
    assert.equal(connections.length, 2)
  })

  test('one whose response was left before its end is closed if the rest does not come', async () => {
    const requests = direct(await serve((_, response) => void response.write('x')), { restMsMax: 20 })
    const received = new Received()
    const exchange = requests.post(none, received)
    await until('the first byte', () => (received.text === 'x' ? true : undefined))
    exchange.leave()
    await closed(connections[0])
    assert.equal(received.end, undefined)
  })

  test('one on which something comes that nobody asked for is closed', async () => {
    const requests = direct(await serve(ownPort))
    await ask(requests)
    connections[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx')
    await closed(connections[0])
    const second = await ask(requests)
    assert.equal(second.text, String(connections[1]?.remotePort))
  })

  test('one with more than the response is not used again', async () => {
    const requests = direct(
      await serveRaw((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n')),
    )
    assert.equal((await ask(requests)).text, 'x')
    await closed(connections[0])
  })

  test('one whose server answered and does not read the rest of the request is not used again', async () => {
    const requests = direct(
      await listen(
        createServer((socket) => {
          socket.pause()
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig')
        }),
      ),
    )
    const received = await ask(requests, 'x'.repeat(32 * 1024 * 1024))
    assert.equal(received.response?.status, 413)
    assert.equal(received.text, 'big')
    assert.deepEqual(received.end, { error: undefined })
    assert.equal((await ask(requests)).response?.status, 413)
    assert.equal(connections.length, 2)
  })

  test('one whose server reads the rest of the request after its answer is used again', async () => {
    let bytes = 0
    const url = await listen(
      createServer((socket) => {
        socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig')
        setImmediate(() => socket.on('data', (piece) => (bytes += piece.length)))
      }),
    )
    const requests = direct(url)
    const body = 'x'.repeat(4 * 1024 * 1024)
    await ask(requests, body)
    await until('the whole request', () => (bytes > body.length ? true : undefined))
    // The client learns that everything was sent through the same socket.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    requests.prepare()
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(connections.length, 1)
  })

  test('a switch to another protocol, which nobody asked for, is an error', async () => {
    const url = await serveRaw((socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'))
    const received = await ask(direct(url))
    assert.equal(codeOf(received), 'HTTP_PROTOCOL')
    await closed(connections[0])
  })

  describe('with TLS', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-tls-'))
    const certificate = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', 'key.pem', '-out', 'cert.pem']
    const made = spawnSync('openssl', ['req', ...certificate, ...names], { cwd: folder }).status === 0
    const [key, cert] = made
      ? [readFileSync(join(folder, 'key.pem')), readFileSync(join(folder, 'cert.pem'))]
      : [undefined, undefined]
    rmSync(folder, { recursive: true })
    const options = made ? {} : { skip: 'there is no openssl here to make a certificate' }
    const serveTls = (listener: http.RequestListener, host = 'localhost') =>
      listen(https.createServer({ key, cert }, listener), 'secureConnection', host)

    test('one that was opened early has the name of its host, and is used', options, async () => {
      const requests = direct(await serveTls((_, response) => response.end('safe')), { tls: { ca: cert } })
      requests.prepare()
      await opened(1)
      assert.equal((connections[0] as unknown as { servername: string }).servername, 'localhost')
      assert.equal((await ask(requests)).text, 'safe')
      assert.equal((await ask(requests, 'x'.repeat(100_000))).text, 'safe')
      assert.equal(connections.length, 1)
    })

    test('the next connection continues the session of the one before', options, async () => {
      const continued: boolean[] = []
      const url = await serveTls((request, response) => {
        continued.push((request.socket as TLSSocket).isSessionReused())
        response.writeHead(200, { connection: 'close' }).end('x'.repeat(200_000))
      })
      const requests = direct(url, { tls: { ca: cert } })
      for (let count = 0; count < 2; count++) {
        const { text, end } = await ask(requests)
        assert.deepEqual([text.length, end], [200_000, { error: undefined }])
        await closed(connections[count])
      }
      assert.deepEqual(continued, [false, true])
    })

    test('a server whose certificate is not trusted gets nothing', options, async () => {
      let asked = 0
      const url = await serveTls(() => (asked += 1))
      const received = await ask(direct(url))
      assert.match(String(codeOf(received)), /SELF_SIGNED|UNABLE_TO_VERIFY/)
      assert.equal(asked, 0)
    })

    test('a server with a certificate of another name gets nothing', options, async () => {
      let asked = 0
      const url = await serveTls(() => (asked += 1), '127.0.0.1')
      const received = await ask(direct(url, { tls: { ca: cert } }))
      assert.equal(codeOf(received), 'ERR_TLS_CERT_ALTNAME_INVALID')
      assert.equal(asked, 0)
    })
  })
})
