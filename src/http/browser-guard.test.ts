import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { type BrowserRules, createBrowserGuard } from './browser-guard.ts'

const guard = (rules: Partial<BrowserRules> = {}) =>
  createBrowserGuard({ listenHost: '127.0.0.1', allowedHosts: [], corsOrigins: [], ...rules })

function codeOf(work: () => void): string {
  try {
    work()
    return 'ok'
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    return error.code
  }
}

describe('Host', () => {
  const check = (hosts: string[], rules: Partial<BrowserRules> = {}, minor = 1) =>
    codeOf(() =>
      guard(rules).checkHost({
        rawHeaders: hosts.flatMap((host) => ['HoSt', host]).concat('accept', '*/*'),
        httpVersionMajor: 1,
        httpVersionMinor: minor,
      }),
    )

  test('may be the address, localhost or a loopback address, with any port', () => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:3000',
      'localhost',
      'LOCALHOST:9',
      'localhost.',
      '127.8.8.8',
      '[::1]:1',
    ])
      assert.equal(check([host]), 'ok', host)
    assert.equal(check(['10.0.0.7:3000'], { listenHost: '10.0.0.7' }), 'ok')
    assert.equal(check(['app.internal'], { listenHost: 'App.Internal' }), 'ok')
    assert.equal(check(['[fd00::7]'], { listenHost: 'fd00:0::7' }), 'ok')
  })

  test('may not be a name that is not listed, however it is written', () => {
    for (const host of [
      'evil.example',
      'evil.example:3000',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'evil-localhost',
      '10.0.0.7',
      '0.0.0.0',
      '[::2]',
    ])
      assert.equal(check([host]), 'host_not_allowed', host)
  })

  test('may be what is listed: a name, every name below one, or any', () => {
    const rules = { allowedHosts: ['app.example.com', '*.example.org'] }
    assert.equal(check(['APP.example.com:443'], rules), 'ok')
    assert.equal(check(['a.b.example.org'], rules), 'ok')
    for (const host of [
      'example.com',
      'x.app.example.com',
      'example.org',
      'notexample.org',
      'example.org.evil.example',
    ])
      assert.equal(check([host], rules), 'host_not_allowed', host)
    assert.equal(check(['anything.at.all'], { allowedHosts: ['*'] }), 'ok')
  })

  test('may be any address when the server listens at all of them, and still no name', () => {
    for (const listenHost of ['0.0.0.0', '::']) {
      assert.equal(check(['192.0.2.7:3000'], { listenHost }), 'ok')
      assert.equal(check(['[2001:db8::7]'], { listenHost }), 'ok')
      assert.equal(check(['evil.example'], { listenHost }), 'host_not_allowed')
    }
  })

  test('must be there once, and be a host name', () => {
    assert.equal(check([]), 'host_invalid')
    assert.equal(check([], {}, 0), 'ok', 'HTTP/1.0 has no Host')
    assert.equal(check(['localhost', 'localhost']), 'host_invalid')
    assert.equal(check(['localhost', 'evil.example']), 'host_invalid')
    for (const host of ['', 'a b', 'localhost/x', 'user@localhost', 'localhost:port', 'localhost,evil.example', 'a\\b'])
      assert.equal(check([host]), 'host_invalid', JSON.stringify(host))
  })
})

describe('Origin', () => {
  const host = 'localhost:3000'
  const check = (headers: Record<string, string>, rules: Partial<BrowserRules> = {}, method = 'POST') =>
    codeOf(() => guard(rules).checkOrigin({ method, headers, host }))

  test('may be our own, or absent, on requests that change something', () => {
    for (const method of ['POST', 'PATCH', 'PUT', 'DELETE']) {
      assert.equal(check({}, {}, method), 'ok')
      assert.equal(check({ origin: 'http://localhost:3000' }, {}, method), 'ok')
      assert.equal(check({ origin: 'https://localhost:3000', 'sec-fetch-site': 'same-origin' }, {}, method), 'ok')
    }
  })

  test('may not be another, nor null, nor another port of the same machine', () => {
    for (const method of ['POST', 'PATCH', 'PUT', 'DELETE'])
      for (const origin of [
        'http://evil.example',
        'http://localhost:5173',
        'http://localhost',
        'null',
        '',
        'http://localhost:3000.evil.example',
        'http://localhost:3000, http://evil.example',
        'file://',
      ])
        assert.equal(check({ origin }, {}, method), 'origin_not_allowed', `${method} ${origin}`)
  })

  test('counts the default port of its scheme as no port', () => {
    const at = (origin: string, here: string) =>
      codeOf(() => guard().checkOrigin({ method: 'POST', headers: { origin }, host: here }))
    assert.equal(at('https://app.example', 'app.example:443'), 'ok')
    assert.equal(at('https://app.example', 'app.example'), 'ok')
    assert.equal(at('https://app.example', 'app.example:80'), 'origin_not_allowed')
  })

  test('a browser that says the page is of another site is believed, also without Origin', () => {
    for (const site of ['cross-site', 'same-site']) {
      assert.equal(check({ 'sec-fetch-site': site }), 'origin_not_allowed')
      assert.equal(check({ 'sec-fetch-site': site, origin: 'http://localhost:3000' }), 'origin_not_allowed')
    }
    for (const site of ['same-origin', 'none']) assert.equal(check({ 'sec-fetch-site': site }), 'ok')
  })

  test('may be one that is listed, whatever site it is of, or any with *', () => {
    const listed = { corsOrigins: ['https://App.example.com'] }
    assert.equal(check({ origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' }, listed), 'ok')
    assert.equal(check({ origin: 'http://app.example.com' }, listed), 'origin_not_allowed')
    assert.equal(check({ origin: 'https://anything.example' }, { corsOrigins: ['*'] }), 'ok')
  })

  test('is not checked on requests that change nothing: the browser itself hides such answers from foreign pages', () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      assert.equal(check({ origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }, {}, method), 'ok')
  })
})
