import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import { hashOfKey } from '../../test/support/api-keys.ts'
import { AppError } from '../errors/app-error.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { type AuthSettings, claimsOf, createAuthenticator, resolveCaller } from './caller.ts'

const secret = 'a shared secret for these tests only'
const nothing: AuthSettings = {
  mode: 'open',
  jwtSecret: null,
  jwksUrl: null,
  jwtIssuer: null,
  jwtAudience: null,
  allowTokensWithoutExp: false,
  apiKeys: new Map(),
}
const clock = manualClock()
const nowSeconds = Math.floor(clock.now() / 1000)

async function authenticate(settings: Partial<AuthSettings>, headers: Record<string, string>) {
  const authenticator = await createAuthenticator({ ...nothing, ...settings }, { clock })
  return await authenticator.authenticate(headers)
}

function bearer(token: string) {
  return { authorization: `Bearer ${token}` }
}

function signed(
  claims: Record<string, unknown>,
  key: string | CryptoKey = secret,
  header: Record<string, string> = {},
) {
  const material = typeof key === 'string' ? new TextEncoder().encode(key) : key
  return new SignJWT({ exp: nowSeconds + 3600, ...claims })
    .setProtectedHeader({ alg: 'HS256', ...header })
    .sign(material)
}

async function refused(promise: Promise<unknown>, code: string): Promise<AppError> {
  const error = await promise.then(
    (value) => assert.fail(`was accepted: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof AppError, String(error))
  assert.equal(error.code, code)
  return error
}

// A login server on a real socket, which publishes its keys.
const keys: Record<'RS256' | 'ES256' | 'EdDSA' | 'RS512' | 'other', { privateKey: CryptoKey; publicKey: CryptoKey }> =
  {} as never
let published: { keys: JWK[] } = { keys: [] }
let keyFetches = 0
let answer: 'keys' | 'status 500' | 'nonsense' = 'keys'
let loginServer: Server
let jwksUrl: string

before(async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA', 'RS512'] as const)
    keys[alg] = await generateKeyPair(alg, { extractable: true })
  keys.other = await generateKeyPair('ES256', { extractable: true })
  for (const alg of ['RS256', 'ES256', 'EdDSA', 'RS512'] as const) {
    published.keys.push({ ...(await exportJWK(keys[alg].publicKey)), kid: alg, alg, use: 'sig' })
  }
  loginServer = createServer((_request, response) => {
    keyFetches++
    if (answer === 'status 500') response.writeHead(500).end()
    else
      response
        .setHeader('content-type', 'application/json')
        .end(answer === 'keys' ? JSON.stringify(published) : '<html>')
  })
  await new Promise<void>((resolve) => loginServer.listen(0, '127.0.0.1', resolve))
  jwksUrl = `http://127.0.0.1:${(loginServer.address() as AddressInfo).port}/keys`
})

after(() => {
  loginServer.closeAllConnections()
  loginServer.close()
})

test('without any secret, open mode ignores credentials', async () => {
  assert.equal(await authenticate({}, {}), null)
  assert.equal(await authenticate({}, { ...bearer('whatever'), 'x-api-key': 'placeholder' }), null)
})

test('open mode with secrets accepts a request without credentials as anonymous', async () => {
  assert.equal(await authenticate({ jwtSecret: secret }, {}), null)
})

test('required mode refuses a request without credentials', async () => {
  await refused(authenticate({ mode: 'required', jwtSecret: secret }, {}), 'unauthorized')
  await refused(authenticate({ mode: 'required' }, bearer('anything')), 'unauthorized')
})

test('a token signed with the shared secret is its sub', async () => {
  const token = await signed({ sub: 'ann' })

  assert.deepEqual(await authenticate({ jwtSecret: secret }, bearer(token)), { userId: 'ann', by: 'jwt' })
  assert.deepEqual(await authenticate({ jwtSecret: secret }, { authorization: `bearer ${token}` }), {
    userId: 'ann',
    by: 'jwt',
  })
})

test('a wrong credential is refused in both modes, never treated as anonymous', async () => {
  for (const mode of ['open', 'required'] as const) {
    const settings = { mode, jwtSecret: secret, apiKeys: new Map([[hashOfKey('k'), 'ann']]) }
    const foreign = await signed({ sub: 'ann' }, 'another secret')
    for (const headers of [
      bearer(foreign),
      bearer('not.a.token'),
      bearer('x'),
      { authorization: 'Bearer ' },
      { authorization: 'Basic YTpi' },
      { authorization: '' },
      { 'x-api-key': '' },
      { 'x-api-key': 'K' },
      { ...bearer(await signed({ sub: 'ann' })), 'x-api-key': 'wrong' },
    ]) {
      await refused(authenticate(settings, headers), 'unauthorized')
    }
  }
})

test('sub must be a non-empty string', async () => {
  for (const claims of [{}, { sub: '' }, { sub: '  ' }, { sub: 7 }, { sub: null }]) {
    const token = await signed(claims)
    await refused(authenticate({ jwtSecret: secret }, bearer(token)), 'unauthorized')
  }
})

test('exp and nbf are judged by the clock that was handed in', async () => {
  const moving = manualClock()
  const authenticator = await createAuthenticator({ ...nothing, jwtSecret: secret }, { clock: moving })
  const token = await signed({ sub: 'ann', nbf: nowSeconds + 10, exp: nowSeconds + 20 })

  await refused(authenticator.authenticate(bearer(token)), 'unauthorized')
  await moving.advance(10_000)
  assert.equal((await authenticator.authenticate(bearer(token)))?.userId, 'ann')
  await moving.advance(10_000)
  const error = await refused(authenticator.authenticate(bearer(token)), 'unauthorized')

  assert.match(error.message, /expired/)
})

test('issuer and audience are checked only if they are configured', async () => {
  const token = await signed({ sub: 'ann', iss: 'https://login.example', aud: ['polylog', 'mail'] })
  const bare = await signed({ sub: 'ann' })
  const strict = { jwtSecret: secret, jwtIssuer: 'https://login.example', jwtAudience: 'polylog' }

  assert.equal((await authenticate({ jwtSecret: secret }, bearer(token)))?.userId, 'ann')
  assert.equal((await authenticate(strict, bearer(token)))?.userId, 'ann')
  await refused(authenticate(strict, bearer(bare)), 'unauthorized')
  await refused(authenticate({ ...strict, jwtAudience: 'other' }, bearer(token)), 'unauthorized')
  await refused(authenticate({ ...strict, jwtIssuer: 'other' }, bearer(token)), 'unauthorized')
})

test('a token without a signature, or with another algorithm, is refused', async () => {
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"ann"}').toString('base64url')}.`
  const stronger = await new SignJWT({ sub: 'ann', exp: nowSeconds + 3600 })
    .setProtectedHeader({ alg: 'HS512' })
    .sign(new TextEncoder().encode(secret.repeat(2)))

  await refused(authenticate({ jwtSecret: secret, jwksUrl }, bearer(unsigned)), 'unauthorized')
  await refused(authenticate({ jwtSecret: secret.repeat(2) }, bearer(stronger)), 'unauthorized')
})

test('published keys verify RS256, ES256 and EdDSA, and nothing else', async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA'] as const) {
    const token = await signed({ sub: alg }, keys[alg].privateKey, { alg, kid: alg })
    assert.equal((await authenticate({ jwksUrl }, bearer(token)))?.userId, alg)
  }
  const other = await signed({ sub: 'ann' }, keys.RS512.privateKey, { alg: 'RS512', kid: 'RS512' })
  await refused(authenticate({ jwksUrl }, bearer(other)), 'unauthorized')
})

test('what the login server publishes does not widen the algorithms that are accepted', async () => {
  const original = published
  const shared = 'a symmetric key that should never be published'
  try {
    for (const alg of ['RS384', 'RS512', 'PS256', 'ES384', 'ES512']) {
      const pair = await generateKeyPair(alg, { extractable: true })
      const jwk = await exportJWK(pair.publicKey)
      for (const label of [{ alg }, {}]) {
        published = { keys: [{ ...jwk, kid: 'k', ...label }] }
        const token = await signed({ sub: 'ann' }, pair.privateKey, { alg, kid: 'k' })
        const error = await refused(authenticate({ jwksUrl }, bearer(token)), 'unauthorized')
        assert.match(error.message, /algorithm/, alg)
      }
    }
    const k = Buffer.from(shared).toString('base64url')
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      published = { keys: [{ kty: 'oct', k, kid: 'k', alg }] }
      for (const settings of [{ jwksUrl }, { jwksUrl, jwtSecret: secret }]) {
        const token = await signed({ sub: 'ann' }, shared, { alg, kid: 'k' })
        await refused(authenticate(settings, bearer(token)), 'unauthorized')
      }
    }
  } finally {
    published = original
  }
})

test('a token without exp is refused unless a setting allows it', async () => {
  for (const [settings, key, header] of [
    [{ jwtSecret: secret }, secret, {}],
    [{ jwksUrl }, keys.ES256.privateKey, { alg: 'ES256', kid: 'ES256' }],
  ] as const) {
    const token = await signed({ sub: 'ann', exp: undefined }, key, header)

    const error = await refused(authenticate(settings, bearer(token)), 'unauthorized')
    assert.match(error.message, /no exp claim/)
    assert.equal((await authenticate({ ...settings, allowTokensWithoutExp: true }, bearer(token)))?.userId, 'ann')
  }
})

test('a published key cannot be used as a shared secret', async () => {
  const modulus = published.keys[0]?.n ?? ''
  const forged = await signed({ sub: 'ann' }, modulus, { kid: 'RS256' })

  await refused(authenticate({ jwksUrl }, bearer(forged)), 'unauthorized')
})

test('a key that is not published is refused, also under the id of a published one', async () => {
  const unknownKey = await signed({ sub: 'ann' }, keys.other.privateKey, { alg: 'ES256', kid: 'other' })
  const borrowedName = await signed({ sub: 'ann' }, keys.other.privateKey, { alg: 'ES256', kid: 'ES256' })

  await refused(authenticate({ jwksUrl }, bearer(unknownKey)), 'unauthorized')
  await refused(authenticate({ jwksUrl }, bearer(borrowedName)), 'unauthorized')
})

test('a token that names no key is tried with every key that fits', async () => {
  const second = { ...(await exportJWK(keys.other.publicKey)), kid: 'second', alg: 'ES256', use: 'sig' }
  const original = published
  published = { keys: [...original.keys, second] }
  try {
    const token = await signed({ sub: 'ann' }, keys.other.privateKey, { alg: 'ES256' })
    const foreign = await signed({ sub: 'ann' }, (await generateKeyPair('ES256')).privateKey, { alg: 'ES256' })

    assert.equal((await authenticate({ jwksUrl }, bearer(token)))?.userId, 'ann')
    await refused(authenticate({ jwksUrl }, bearer(foreign)), 'unauthorized')
  } finally {
    published = original
  }
})

test('the keys are fetched once, and not for each request', async () => {
  const authenticator = await createAuthenticator({ ...nothing, jwksUrl }, { clock })
  const token = await signed({ sub: 'ann' }, keys.ES256.privateKey, { alg: 'ES256', kid: 'ES256' })
  const fetchesBefore = keyFetches

  for (let round = 0; round < 5; round++) await authenticator.authenticate(bearer(token))

  assert.equal(keyFetches - fetchesBefore, 1)
})

test('keys that cannot be fetched are a server error and not an invalid token', async () => {
  const token = await signed({ sub: 'ann' }, keys.ES256.privateKey, { alg: 'ES256', kid: 'ES256' })
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const deadUrl = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/keys`
  await new Promise((resolve) => closed.close(resolve))

  const error = await refused(authenticate({ jwksUrl: deadUrl }, bearer(token)), 'auth_unavailable')
  assert.equal(error.kind, 'unavailable')
  try {
    answer = 'status 500'
    await refused(authenticate({ jwksUrl }, bearer(token)), 'auth_unavailable')
    answer = 'nonsense'
    await refused(authenticate({ jwksUrl }, bearer(token)), 'auth_unavailable')
  } finally {
    answer = 'keys'
  }
  // A token that could never be accepted is wrong whether or not the keys are there.
  await refused(authenticate({ jwksUrl: deadUrl }, bearer('garbage')), 'unauthorized')
})

test('an API key works in either header, whatever else is configured', async () => {
  const apiKeys = new Map([
    [hashOfKey('key of ann'), 'wrong one'],
    [hashOfKey('ann-key'), 'ann'],
    [hashOfKey('bob-key'), 'bob'],
  ])

  assert.deepEqual(await authenticate({ apiKeys }, { 'x-api-key': 'ann-key' }), { userId: 'ann', by: 'api_key' })
  assert.deepEqual(await authenticate({ apiKeys }, bearer('bob-key')), { userId: 'bob', by: 'api_key' })
  assert.deepEqual(await authenticate({ apiKeys, jwtSecret: secret }, bearer('ann-key')), {
    userId: 'ann',
    by: 'api_key',
  })
  await refused(authenticate({ apiKeys }, { 'x-api-key': hashOfKey('ann-key') }), 'unauthorized')
})

test('two credentials must name the same user', async () => {
  const settings = { jwtSecret: secret, apiKeys: new Map([[hashOfKey('k'), 'ann']]) }

  assert.equal(
    (await authenticate(settings, { ...bearer(await signed({ sub: 'ann' })), 'x-api-key': 'k' }))?.userId,
    'ann',
  )
  await refused(authenticate(settings, { ...bearer(await signed({ sub: 'bob' })), 'x-api-key': 'k' }), 'unauthorized')
})

test('a login wins over everything a request claims', () => {
  const login = { userId: 'ann', by: 'jwt' } as const

  for (const mode of ['open', 'required'] as const) {
    assert.deepEqual(resolveCaller({ login, mode, claimed: { userId: 'bob' } }), {
      userId: 'ann',
      loggedIn: true,
      named: true,
    })
  }
})

test('in required mode a claim is no login', () => {
  assert.throws(() => resolveCaller({ login: null, mode: 'required', claimed: { userId: 'bob' } }), {
    code: 'unauthorized',
  })
})

test('in open mode the first claim that is given counts, else the caller is anonymous and not named', () => {
  const who = (claimed: Parameters<typeof resolveCaller>[0]['claimed']) =>
    resolveCaller({ login: null, mode: 'open', claimed })

  assert.deepEqual(who({ userId: 'a', client_id: 'b' }), { userId: 'a', loggedIn: false, named: true })
  assert.equal(who({ client_id: ' b ' }).userId, 'b')
  assert.equal(who({ userId: '  ', client_id: 'b' }).userId, 'b')
  assert.equal(who({ userId: 'x'.repeat(200) }).userId, 'x'.repeat(200))
  for (const none of [{}, { userId: null }, { userId: ' ', client_id: '' }])
    assert.deepEqual(who(none), { userId: 'anonymous', loggedIn: false, named: false })
})

test('a claim that is no text, or too long, is refused and does not count as no claim', () => {
  for (const claimed of [{ userId: 7 }, { userId: ['a'] }, { client_id: {} }, { userId: 'x'.repeat(201) }])
    assert.throws(() => resolveCaller({ login: null, mode: 'open', claimed }), { code: 'invalid_request' })
})

test('claims come from the body, else from the query; a blank one is none', () => {
  assert.deepEqual(claimsOf({ userId: 'a' }, { userId: 'q', client_id: 'c' }), { userId: 'a', client_id: 'c' })
  assert.equal(claimsOf(undefined, { userId: 'q' }).userId, 'q')
  assert.equal(claimsOf({ userId: ' ' }, { userId: 'q' }).userId, 'q')
  assert.equal(claimsOf({ context: { userId: 'c' } }, null).userId, undefined)
  assert.equal(claimsOf('text', null).userId, undefined)
})
