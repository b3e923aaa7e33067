import assert from 'node:assert/strict'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { isPrivateAddress } from '../kit/private-address.ts'
import { AllowedHosts, allowedHostProblem } from './allowed-hosts.ts'
import { fetchFile, type UrlFetcherOptions } from './url-fetcher.ts'

describe('the hosts that a server may fetch from', () => {
  const find = (entries: string[], url: string) => new AllowedHosts(entries).find(new URL(url))

  it('are names with their port and scheme, or all names below one', () => {
    assert.deepEqual(find(['cdn.example.com'], 'https://cdn.example.com/a.png'), { names: true })
    assert.deepEqual(find(['*.example.com'], 'https://a.b.example.com/'), { names: false })
    assert.deepEqual(find(['http://localhost:8080'], 'http://LOCALHOST:8080/x'), { names: true })
    for (const [entry, url] of [
      ['cdn.example.com', 'http://cdn.example.com/'],
      ['cdn.example.com', 'https://cdn.example.com:8443/'],
      ['cdn.example.com', 'https://cdn.example.com.evil.example/'],
      ['cdn.example.com', 'https://user:secret@cdn.example.com/'],
      ['cdn.example.com', 'https://evil.example/?cdn.example.com'],
      ['*.example.com', 'https://example.com/'],
      ['*.example.com', 'https://evilexample.com/'],
      ['*.0.0.1', 'https://127.0.0.1/'],
      ['cdn.example.com', 'file://cdn.example.com/etc/passwd'],
    ] as const)
      assert.equal(find([entry], url), undefined, `${entry} ${url}`)
  })

  it('are checked when the settings are read', () => {
    for (const entry of ['a.example', '*.a.example', 'localhost:80', 'http://10.0.0.1:9', '[::1]:8080'])
      assert.equal(allowedHostProblem(entry), null, entry)
    for (const entry of ['*', 'a.example/path', 'ftp://a.example', 'a b', 'u@a.example', 'a.*.example'])
      assert.notEqual(allowedHostProblem(entry), null, entry)
  })
})

it('private addresses are recognised in every notation', () => {
  for (const address of [
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '192.168.0.1',
    '0.0.0.0',
    '::1',
    '::',
    'fd00::1',
    'fe80::1',
  ])
    assert.ok(isPrivateAddress(address), address)
  for (const address of ['::ffff:127.0.0.1', '::ffff:10.0.0.1', '64:ff9b::7f00:1', 'nonsense'])
    assert.ok(isPrivateAddress(address), address)
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1111', '::ffff:1.1.1.1'])
    assert.ok(!isPrivateAddress(address), address)
})

async function* endless() {
  for (;;) {
    yield Buffer.alloc(64)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('fetching a file', () => {
  const asked: http.IncomingMessage[] = []
  const server = http.createServer((request, response) => {
    asked.push(request)
    switch (request.url?.split('?')[0]) {
      case '/a.txt':
        return response.setHeader('content-type', 'text/plain').end('hello')
      case '/moved':
        return response.writeHead(302, { location: 'http://127.0.0.1:1/secret' }).end()
      case '/large':
        return response.writeHead(200, { 'content-length': '1000000' }).end(Buffer.alloc(1_000_000))
      case '/endless':
        return void pipeline(Readable.from(endless()), response, () => {})
      case '/slow':
        return response.write('x')
      default:
        return response.writeHead(404).end()
    }
  })
  let port: number
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  const get = (path: string, host = `localhost:${port}`, more: Partial<UrlFetcherOptions> = {}) =>
    fetchFile(`http://${host}${path}`, {
      allowed: new AllowedHosts([
        `http://localhost:${port}`,
        `http://127.0.0.1:${port}`,
        `http://*.example.com:${port}`,
        `http://cdn.example.org:${port}`,
      ]),
      clock: manualClock(),
      bytesMax: 1000,
      resolve: async () => ['127.0.0.1'],
      ...more,
    })

  it('gives its bytes, type and name, and sends no credentials', async () => {
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) {
      const { bytes, mediaType, name } = await get('/a.txt?x=1', host)
      assert.deepEqual([Buffer.from(bytes).toString(), mediaType, name], ['hello', 'text/plain', 'a.txt'])
    }
    assert.deepEqual([asked[0]?.headers.cookie, asked[0]?.headers.authorization], [undefined, undefined])
  })

  it('is refused for hosts that are not allowed, and for names that lead to a private address', async () => {
    const before = asked.length
    for (const host of [
      `other.example:${port}`,
      `pictures.example.com:${port}`,
      `cdn.example.org:${port}`,
      'localhost:1',
    ])
      await assert.rejects(get('/a.txt', host), { code: 'file_url_refused' }, host)
    await assert.rejects(get('/a.txt', `cdn.example.org:${port}`, { resolve: async () => [] }), /was not found/)
    await assert.rejects(
      get('/a.txt', `cdn.example.org:${port}`, { resolve: async () => ['169.254.169.254', '::1'] }),
      /private/,
    )
    assert.equal(asked.length, before)
  })

  it('follows no redirect, and accepts only success', async () => {
    await assert.rejects(get('/moved'), { code: 'file_url_refused', message: /redirects/ })
    await assert.rejects(get('/missing'), { code: 'file_url_refused', message: /status 404/ })
  })

  it('stops at the size limit, whether it is announced or not', async () => {
    await assert.rejects(get('/large'), { code: 'file_too_large' })
    await assert.rejects(get('/endless'), { code: 'file_too_large' })
  })

  it('stops when it takes too long', async () => {
    const clock = manualClock()
    const before = asked.length
    const waiting = assert.rejects(get('/slow', undefined, { clock }), { code: 'file_url_refused', message: /in time/ })
    while (asked.length === before) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(20_000)
    await waiting
  })
})
