import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { ProtocolError, type ResponseHead, ResponseParser } from './response-parser.ts'

type Outcome = { heads: ResponseHead[]; body: string; isOver: boolean; rest: string; usableMs: number }

/** Feeds the text in pieces that end at the cuts. */
function read(text: string, cuts: readonly number[] = []): Outcome {
  const parser = new ResponseParser()
  const heads: ResponseHead[] = []
  let body = ''
  parser.begin({
    head: (head) => heads.push(head),
    body: (bytes, from, to) => (body += bytes.toString('latin1', from, to)),
  })
  const buffer = Buffer.alloc(text.length + 8)
  let at = 0
  for (const cut of [...cuts, text.length].toSorted((a, b) => a - b)) {
    const length = buffer.write(text.slice(at, cut), 'latin1')
    const used = parser.feed(buffer, length)
    at += used
    buffer.fill('?')
    if (used < length) break
  }
  const isOver = !parser.isReading || parser.endOfConnection()
  return { heads, body, isOver, rest: text.slice(at), usableMs: parser.usableMs }
}

const ok = 'HTTP/1.1 200 OK\r\n'
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`

const piece = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
})
const value = fc.stringMatching(/^[!-~]([ -~]{0,10}[!-~])?$/)
const name = fc.stringMatching(/^x-[a-z0-9_]{1,8}$/)
const caps = fc.constantFrom('', '0', '00')

const framedBody = fc.oneof(
  fc.record({ framing: fc.constant('sized' as const), pieces: fc.array(piece, { maxLength: 1 }) }),
  fc.record({ framing: fc.constant('open' as const), pieces: fc.array(piece, { maxLength: 3 }) }),
  fc.record({
    framing: fc.constant('chunked' as const),
    pieces: fc.array(fc.string({ minLength: 1, maxLength: 300, unit: 'binary-ascii' }), { maxLength: 6 }),
    zeros: caps,
    extension: fc.constantFrom('', ';a=b', ' ; name="x y"', '\t'),
    trailers: fc.array(fc.constantFrom('X-Sum: 1\r\n', 'Y: \r\n'), { maxLength: 2 }),
  }),
)

test('what the receiver gets does not depend on how the bytes are split', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
      fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 }),
      framedBody,
      fc.array(fc.integer({ min: 0, max: 1500 }), { maxLength: 30 }),
      fc.boolean(),
      (status, headers, framed, cuts, hasInterim) => {
        const body = framed.pieces.join('')
        const lines = headers.map(([key, text]) => `${key.toUpperCase()}:  ${text} \r\n`).join('')
        const { heads, bytes } = {
          sized: () => ({ heads: `content-length: ${body.length}\r\n`, bytes: body }),
          open: () => ({ heads: '', bytes: body }),
          chunked: () => ({ heads: 'transfer-encoding: Chunked\r\n', bytes: chunksOf(framed as never) }),
        }[framed.framing]()
        const interim = hasInterim ? 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n' : ''
        const response = `${interim}HTTP/1.1 ${status} Why not\r\n${lines}${heads}\r\n${bytes}`
        const after = framed.framing === 'open' ? '' : 'HTTP/1.1 …'.slice(0, (cuts[0] ?? 0) % 9)

        const outcome = read(
          response + after,
          cuts.map((cut) => cut % (response.length + 1)),
        )

        assert.equal(outcome.heads.length, 1)
        assert.equal(outcome.heads[0]?.status, status)
        for (const [key, text] of headers) assert.equal(outcome.heads[0]?.headers.get(key), text)
        assert.equal(outcome.body, body)
        assert.equal(outcome.isOver, true)
        assert.equal(outcome.rest, after)
      },
    ),
    { numRuns: 500 },
  )
})

function chunksOf({
  pieces,
  zeros,
  extension,
  trailers,
}: Record<'pieces' | 'trailers', string[]> & Record<'zeros' | 'extension', string>): string {
  const chunks = pieces.map((text) => `${zeros}${text.length.toString(16)}${extension}\r\n${text}\r\n`)
  return `${chunks.join('')}0${extension}\r\n${trailers.join('')}\r\n`
}

test('a response that is cut anywhere is not over', () => {
  const whole = `${chunked}3\r\nabc\r\n0\r\nx: y\r\n\r\n`
  for (let length = 0; length < whole.length; length++)
    assert.equal(read(whole.slice(0, length)).isOver, false, `${length}`)
  assert.equal(read(whole).isOver, true)
})

describe('a response without a body', () => {
  for (const head of [
    'HTTP/1.1 204 No Content\r\n',
    `${ok}content-length: 0\r\n`,
    'HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n',
  ]) {
    test(`is over with its head: ${head.split('\r\n')[0]}`, () => {
      assert.deepEqual(
        { ...read(`${head}\r\nnext`), heads: [] },
        { heads: [], body: '', isOver: true, rest: 'next', usableMs: Infinity },
      )
    })
  }
})

describe('the connection', () => {
  const usable: Record<string, number> = {
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n': Infinity,
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\nkeep-alive: timeout=5, max=100\r\n': 4_000,
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: max=100, timeout=1\r\n': 0,
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: x, Close\r\n': 0,
    'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n': 0,
    'HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: Keep-Alive\r\n': Infinity,
    'HTTP/1.1 200 OK\r\n': 0,
  }
  for (const [head, usableMs] of Object.entries(usable)) {
    test(`can be used for ${usableMs} ms after ${JSON.stringify(head)}`, () => {
      assert.equal(read(`${head}\r\n`).usableMs, usableMs)
    })
  }
})

test('names of headers are read in lower case, and what comes twice is joined', () => {
  const { heads } = read(`${ok}X-A: 1\r\nContent-Length: 0\r\nx-a:2\r\nx-empty:\r\n\r\n`)
  assert.deepEqual(heads, [
    {
      status: 200,
      headers: new Map([
        ['x-a', '1, 2'],
        ['content-length', '0'],
        ['x-empty', ''],
      ]),
    },
  ])
})

const refused: Record<string, string> = {
  'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
  'a version that does not exist': 'HTTP/1.2 200 OK\r\n\r\n',
  'a status that is no number': 'HTTP/1.1 2x0 OK\r\n\r\n',
  'a switch to another protocol': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
  'a header without a name': `${ok}: x\r\n\r\n`,
  'a header without a colon': `${ok}nothing\r\n\r\n`,
  'a header on two lines': `${ok}a: b\r\n c\r\n\r\n`,
  'a space before the colon': `${ok}a : b\r\n\r\n`,
  'a zero byte in a header': `${ok}a: b\0c\r\n\r\n`,
  'a line feed alone in a header': `${ok}a: b\nc: d\r\n\r\n`,
  'two lengths': `${ok}content-length: 1\r\ncontent-length: 2\r\n\r\n`,
  'a negative length': `${ok}content-length: -1\r\n\r\n`,
  'a length in words': `${ok}content-length: 0x10\r\n\r\n`,
  'a length and chunks': `${ok}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n`,
  'an unknown encoding': `${ok}transfer-encoding: gzip, chunked\r\n\r\n`,
  'a chunk without a size': `${chunked}\r\nabc`,
  'a chunk with a size in words': `${chunked}three\r\nabc`,
  'a chunk with a minus': `${chunked}-3\r\nabc`,
  'an enormous chunk': `${chunked}ffffffffffffffff\r\n`,
  'a chunk that is longer than its size': `${chunked}3\r\nabcd\r\n`,
  'a chunk whose end has no line feed': `${chunked}3\r\nabc\rx`,
  'a size that ends with a line feed alone': `${chunked}3\nabc`,
  'a size with something behind its end': `${chunked}3\r;x\r\nabc`,
  'an extension with a line feed': `${chunked}3;x\nabc`,
  'trailers that end with a line feed alone': `${chunked}0\r\nx: y\n\r\n`,
}

describe('refused', () => {
  for (const [what, text] of Object.entries(refused)) {
    test(what, () => {
      assert.throws(() => read(text), ProtocolError)
      const everywhere = Array.from(text, (_, index) => index)
      assert.throws(() => read(text, everywhere), ProtocolError)
    })
  }

  for (const [what, begin, unit] of [
    ['a head without an end', ok, 'a: b\r\n'],
    ['an extension without an end', `${chunked}3;`, 'x'],
    ['trailers without an end', `${chunked}0\r\n`, 'x: y\r\n'],
    ['a size without an end', chunked, '0'],
  ] as const) {
    test(`${what}, before it fills the memory`, () => {
      const parser = new ResponseParser()
      parser.begin({ head: () => {}, body: () => {} })
      parser.feed(Buffer.from(begin), begin.length)
      const bytes = Buffer.from(unit)
      let fed = 0
      assert.throws(() => {
        for (; fed < 1_000_000; fed += bytes.length) parser.feed(bytes, bytes.length)
      }, ProtocolError)
      assert.ok(fed <= 17 * 1024, `${fed} bytes`)
    })
  }

  test('by the client of Node as well', async (context) => {
    let next = ''
    const server = createServer((socket) => socket.on('error', () => {}).end(next, 'latin1')).listen(0, '127.0.0.1')
    context.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const ask = () =>
      new Promise<boolean>((resolve) => {
        const call = request({ port, host: '127.0.0.1', method: 'POST' }, (response) => {
          response.on('error', () => resolve(false))
          response.on('end', () => resolve(true))
          response.resume()
        })
        call.on('error', () => resolve(false))
        call.on('close', () => resolve(false))
        call.end()
      })
    for (const [what, text] of Object.entries(refused)) {
      next = text
      // Node takes these in its own way: an unknown encoding goes on to the end of the connection.
      if (/unknown encoding|version|switch/.test(what)) continue
      assert.equal(await ask(), false, what)
    }
  })
})

test('a receiver that stops the parser gets nothing more', () => {
  const parser = new ResponseParser()
  const got: string[] = []
  parser.begin({
    head() {
      got.push('head')
    },
    body(bytes, from, to) {
      got.push(bytes.toString('latin1', from, to))
      parser.stop()
    },
  })
  const bytes = Buffer.from(`${chunked}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`)
  assert.ok(parser.feed(bytes, bytes.length) < bytes.length)
  assert.deepEqual(got, ['head', 'a'])
  assert.equal(parser.isReading, false)
  assert.equal(parser.usableMs, 0)
})

test('the rest of a response can go to another receiver', () => {
  const parser = new ResponseParser()
  const got: string[] = []
  const into = (prefix: string) => ({
    head() {},
    body: (bytes: Buffer, from: number, to: number) => {
      got.push(prefix + bytes.toString('latin1', from, to))
      parser.redirect(into('second '))
    },
  })
  parser.begin(into('first '))
  const bytes = Buffer.from(`${chunked}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`)
  parser.feed(bytes, bytes.length)
  assert.deepEqual(got, ['first a', 'second b'])
})

test('a receiver is let go when its response has ended', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const parser = new ResponseParser()
  const read = (): WeakRef<object> => {
    const receiver = { head: () => {}, body: () => {} }
    parser.begin(receiver)
    const bytes = Buffer.from(`${chunked}1\r\na\r\n0\r\n\r\n`)
    parser.feed(bytes, bytes.length)
    return new WeakRef(receiver)
  }
  const receiver = read()
  // A reference that was just made is held until the end of its turn.
  await new Promise(setImmediate)
  collect()
  assert.equal(receiver.deref(), undefined)
  assert.equal(parser.isReading, false)
})
