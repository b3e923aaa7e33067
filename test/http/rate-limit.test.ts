// What counts against the limit of requests, and for whom: failed logins for the address
// they came from, and an address only as far as the proxies before the server are ours.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { callServer } from '../support/test-server.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'

const apiKeys = apiKeysSetting({ ann: 'ann-key' })

async function withServer(
  environment: Record<string, string>,
  work: (polylog: Polylog) => Promise<void>,
): Promise<void> {
  const polylog = await startPolylog({ POLYLOG_RATE_LIMIT: '3', ...environment })
  try {
    await work(polylog)
  } finally {
    await polylog.dispose()
  }
}

/** The statuses of so many requests. */
async function statuses(
  polylog: Polylog,
  count: number,
  headers: (index: number) => Record<string, string>,
): Promise<number[]> {
  const all: number[] = []
  for (let index = 0; index < count; index++)
    all.push((await callServer(polylog.baseUrl, 'GET', '/v1/conversations', { headers: headers(index) })).status)
  return all
}

describe('every request counts', () => {
  for (const [what, path, init] of [
    ['whose body is not JSON', '/v1/agent/chat', { method: 'POST', body: '{', type: 'application/json' }],
    ['whose body is of another type', '/v1/agent/chat', { method: 'POST', body: 'hi', type: 'text/plain' }],
    ['that is not valid', '/v1/agent/chat', { method: 'POST', body: '{}', type: 'application/json' }],
    ['to an address where there is nothing', '/nowhere', { method: 'GET' }],
  ] as const)
    test(`one ${what}, too`, async () => {
      await withServer({}, async (polylog) => {
        const seen = []
        for (let index = 0; index < 5; index++) {
          const { method } = init
          const sent = 'body' in init ? { body: init.body, headers: { 'content-type': init.type } } : {}
          seen.push((await fetch(`${polylog.baseUrl}${path}`, { method, ...sent })).status)
        }

        assert.deepEqual(seen.slice(3), [429, 429])
        assert.ok(seen.slice(0, 3).every((status) => status >= 400 && status < 429))
      })
    })
})

describe('failed logins', () => {
  test('count for their address: after too many the credentials are not looked at any more', async () => {
    for (const mode of ['open', 'required'])
      await withServer({ POLYLOG_AUTH: mode, POLYLOG_API_KEYS: apiKeys }, async (polylog) => {
        assert.deepEqual(
          await statuses(polylog, 5, (index) => ({ 'x-api-key': `guess-${index}` })),
          [401, 401, 401, 429, 429],
        )

        const right = await callServer(polylog.baseUrl, 'GET', '/v1/conversations', {
          headers: { 'x-api-key': 'ann-key' },
        })
        assert.deepEqual([right.status, right.body.code], [429, 'rate_limited'], 'a right guess is not told apart')
        assert.ok(Number(right.headers.get('retry-after')) >= 1)
        assert.equal((await callServer(polylog.baseUrl, 'GET', '/v1/health')).status, 200)
      })
  })

  test('do not count for a login that succeeds', async () => {
    await withServer({ POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeys }, async (polylog) => {
      const mixed = await statuses(polylog, 5, (index) => ({ 'x-api-key': index % 2 === 0 ? 'ann-key' : 'guess' }))
      assert.deepEqual(mixed, [200, 401, 200, 401, 200])
    })
  })
})

describe('the address of a client', () => {
  const forwarded = (value: (index: number) => string) => (index: number) => ({ 'x-forwarded-for': value(index) })

  test('is that of the connection unless proxies are configured: X-Forwarded-For cannot evade the limit', async () => {
    await withServer({}, async (polylog) => {
      assert.deepEqual(
        await statuses(
          polylog,
          5,
          forwarded((index) => `203.0.113.${index}`),
        ),
        [200, 200, 200, 429, 429],
      )
    })
  })

  for (const trust of ['1', 'true', '127.0.0.1', 'loopback, 10.0.0.0/8'])
    test(`is what the proxy appended, with POLYLOG_TRUST_PROXY=${trust}; what the client wrote before it does not count`, async () => {
      await withServer({ POLYLOG_TRUST_PROXY: trust }, async (polylog) => {
        const spoofed = forwarded((index) => `203.0.113.${index}, 198.51.100.7`)
        assert.deepEqual(await statuses(polylog, 4, spoofed), [200, 200, 200, 429])
        assert.deepEqual(
          await statuses(
            polylog,
            1,
            forwarded(() => '198.51.100.8'),
          ),
          [200],
          'another client',
        )
      })
    })

  for (const address of ['198.51.100.7', '[2001:db8::7]'])
    test(`has no port: a proxy that appends ${address}:40001 names the same client as with another port`, async () => {
      await withServer({ POLYLOG_TRUST_PROXY: '1' }, async (polylog) => {
        const client = forwarded((index) => `${address}:${40_000 + index}`)
        assert.deepEqual(await statuses(polylog, 4, client), [200, 200, 200, 429])
      })
    })

  test('is found behind two proxies', async () => {
    await withServer({ POLYLOG_TRUST_PROXY: '2' }, async (polylog) => {
      const client = forwarded((index) => `203.0.113.${index}, 198.51.100.7, 10.0.0.${index}`)
      assert.deepEqual(await statuses(polylog, 4, client), [200, 200, 200, 429])
    })
  })

  test('is that of the connection if it does not come from a named proxy', async () => {
    await withServer({ POLYLOG_TRUST_PROXY: '10.0.0.0/8' }, async (polylog) => {
      assert.deepEqual(
        await statuses(
          polylog,
          4,
          forwarded((index) => `203.0.113.${index}`),
        ),
        [200, 200, 200, 429],
      )
    })
  })
})
