// Authentication: finds the user of a request. A wrong credential is refused in both modes,
// because continuing as another user would hide the mistake. The algorithms are pinned:
// HS256 only with the shared secret, public-key algorithms only with the published keys, so
// that an attacker can never use a public key as a shared secret.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify, type JWTVerifyOptions } from 'jose'
import { AppError } from '../errors/app-error.ts'
import { isApiKeyText } from '../kit/api-key.ts'
import type { Caller } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'

export type AuthMode = 'open' | 'required'

export type AuthSettings = {
  readonly mode: AuthMode
  /** The shared secret for HS256. */
  readonly jwtSecret: string | null
  readonly jwksUrl: string | null
  /** Not checked if null; the same holds for the audience. */
  readonly jwtIssuer: string | null
  readonly jwtAudience: string | null
  /** Should stay false: a token without `exp` never expires, so a leaked one stays valid for ever. */
  readonly allowTokensWithoutExp: boolean
  /** SHA-256 of the key (lower-case hex) → user. */
  readonly apiKeys: ReadonlyMap<string, string>
}

/** A proven identity. */
export type Login = { userId: string; by: 'jwt' | 'api_key' }

export interface Authenticator {
  /**
   * The login that the credentials of a request prove; null if there are none and the mode is `open`. Throws
   * `unauthorized` if they are wrong, and `auth_unavailable` if the published keys cannot be fetched to check them.
   */
  authenticate(headers: IncomingHttpHeaders): Promise<Login | null>
}

export const userCharsMax = 200
export const anonymous = 'anonymous'

// Passed to jose as `algorithms`. Without it the token itself would choose how it is verified.
const sharedSecretAlgorithms = ['HS256']
const publicKeyAlgorithms = ['RS256', 'ES256', 'EdDSA']

export function hasAuthSecret(auth: AuthSettings): boolean {
  return auth.jwtSecret !== null || auth.jwksUrl !== null || auth.apiKeys.size > 0
}

export type AuthenticatorDependencies = {
  clock: Clock
  /** Keys in the database; absent if there is none. */
  storedKeys?: { find(key: string): Promise<string | undefined> }
}

export function createAuthenticator(
  auth: AuthSettings,
  { clock, storedKeys }: AuthenticatorDependencies,
): Authenticator {
  const findSetKey = apiKeyFinder(auth.apiKeys)
  const findApiKey = async (key: string) => findSetKey(key) ?? (await storedKeys?.find(key))
  const verifyJwt = jwtVerifier(auth, clock)
  // Without a configured secret, credentials are ignored in open mode: many front ends send placeholder keys.
  const checksCredentials = hasAuthSecret(auth) || auth.mode === 'required'

  return {
    async authenticate(headers) {
      const apiKey = headers['x-api-key']
      const authorization = headers.authorization
      if (!checksCredentials && !presentsStoredKey(headers)) return null
      if (apiKey === undefined && authorization === undefined) {
        if (auth.mode === 'open') return null
        throw unauthorized('This server needs a login: send Authorization: Bearer <token>, or X-API-Key.')
      }

      const logins: Login[] = []
      if (apiKey !== undefined) {
        const user = typeof apiKey === 'string' ? await findApiKey(apiKey) : undefined
        if (user === undefined) throw unauthorized('The key in X-API-Key is not known to this server.')
        logins.push({ userId: user, by: 'api_key' })
      }
      if (authorization !== undefined) {
        const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
        if (token === undefined) throw unauthorized('The Authorization header must read: Bearer <token or API key>.')
        const user = await findApiKey(token)
        logins.push(
          user === undefined ? { userId: await verifyJwt(token), by: 'jwt' } : { userId: user, by: 'api_key' },
        )
      }
      const [login, other] = logins
      if (other !== undefined && other.userId !== login?.userId) {
        throw unauthorized('X-API-Key and the Authorization header name different users; send one of them.')
      }
      return login ?? null
    },
  }
}

/** Unlike other credentials, a key of this server is never a placeholder. */
function presentsStoredKey({ 'x-api-key': apiKey, authorization = '' }: IncomingHttpHeaders): boolean {
  const token = authorization.replace(/^Bearer +/i, '').trim()
  return isApiKeyText(token) || (typeof apiKey === 'string' && isApiKeyText(apiKey))
}

/** Compares the hash with every key in constant time, so that the response time reveals nothing about the keys. */
function apiKeyFinder(apiKeys: ReadonlyMap<string, string>): (key: string) => string | undefined {
  const entries = [...apiKeys].map(([hash, user]) => ({ hash: Buffer.from(hash, 'hex'), user }))
  return (key) => {
    const presented = createHash('sha256').update(key).digest()
    let found: string | undefined
    for (const entry of entries) {
      if (timingSafeEqual(entry.hash, presented)) found = entry.user
    }
    return found
  }
}

function jwtVerifier(auth: AuthSettings, clock: Clock): (token: string) => Promise<string> {
  const secret = auth.jwtSecret === null ? null : new TextEncoder().encode(auth.jwtSecret)
  const publishedKeys = auth.jwksUrl === null ? null : createRemoteJWKSet(new URL(auth.jwksUrl))

  async function verify(token: string): Promise<unknown> {
    const options: JWTVerifyOptions = {
      currentDate: new Date(clock.now()),
      ...(auth.allowTokensWithoutExp ? {} : { requiredClaims: ['exp'] }),
      ...(auth.jwtIssuer === null ? {} : { issuer: auth.jwtIssuer }),
      ...(auth.jwtAudience === null ? {} : { audience: auth.jwtAudience }),
    }
    const isShared = decodeProtectedHeader(token).alg?.startsWith('HS') === true
    if (secret !== null && isShared) {
      return (await jwtVerify(token, secret, { ...options, algorithms: sharedSecretAlgorithms })).payload.sub
    }
    if (publishedKeys !== null) {
      const pinned = { ...options, algorithms: publicKeyAlgorithms }
      try {
        const verified = await jwtVerify(
          token,
          (header, input) => publishedKeys(header, input).catch(rethrowKeyError),
          pinned,
        )
        return verified.payload.sub
      } catch (error) {
        if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
        // The token names no key and several match: try each of them.
        for await (const key of error) {
          try {
            return (await jwtVerify(token, key, pinned)).payload.sub
          } catch (wrong) {
            if (!(wrong instanceof errors.JWSSignatureVerificationFailed)) throw wrong
          }
        }
        throw new errors.JWSSignatureVerificationFailed()
      }
    }
    throw new errors.JOSEAlgNotAllowed('there is no key for this kind of algorithm')
  }

  return async (token) => {
    if (secret === null && publishedKeys === null) throw unauthorized('The API key is not known to this server.')
    let subject: unknown
    try {
      subject = await verify(token)
    } catch (error) {
      if (error instanceof AppError) throw error
      throw unauthorized(refusalMessage(error), error)
    }
    // Stores replace half a character, so that different users would be one.
    if (typeof subject !== 'string' || subject.trim() === '' || !subject.isWellFormed()) {
      throw unauthorized('The token has no usable sub claim, which must be the user as a non-empty string.')
    }
    return subject
  }
}

/** If no key matches, the token is wrong. Any other error means that the keys could not be fetched. */
function rethrowKeyError(error: unknown): never {
  if (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  ) {
    throw error
  }
  throw new AppError(
    'auth_unavailable',
    'The keys to check logins with cannot be fetched at the moment; try again soon.',
    {
      cause: error,
    },
  )
}

function refusalMessage(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired; get a new one.'
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'exp' && error.reason === 'missing')
    return 'The token has no exp claim, so it would never expire; get one that does.'
  if (error instanceof errors.JWTClaimValidationFailed)
    return `The claim ${error.claim} of the token is not accepted here.`
  if (error instanceof errors.JOSEAlgNotAllowed)
    return 'The token is signed with an algorithm that is not accepted here.'
  return 'The token or API key is not valid.'
}

function unauthorized(message: string, cause?: unknown): AppError {
  return new AppError('unauthorized', message, { cause })
}

/** The user that a request claims to come from, under the field names of the API families. It is not verified. */
export type Claimed = { userId?: unknown; client_id?: unknown }

/** Reads the claims before the schema of the route drops unknown fields. The body takes precedence over the query. */
export function claimsOf(body: unknown, query?: unknown): Claimed {
  const sources = [body, query].filter((source): source is Claimed => typeof source === 'object' && source !== null)
  const first = (name: keyof Claimed) => sources.map((source) => source[name]).find(isGiven)
  return { userId: first('userId'), client_id: first('client_id') }
}

/** Clients send null or blank text for "not given". */
function isGiven(claim: unknown): boolean {
  return claim != null && !(typeof claim === 'string' && claim.trim() === '')
}

/** Whether the request names a user, even if the name is not valid. */
export function namesUser({ userId, client_id }: Claimed): boolean {
  return isGiven(userId) || isGiven(client_id)
}

/** A login takes precedence. In open mode the request may name its user; `userId` and `client_id` share one name space. */
export function resolveCaller(request: { login: Login | null; mode: AuthMode; claimed: Claimed }): Caller {
  const { login, mode, claimed } = request
  if (login !== null) return { userId: login.userId, loggedIn: true, named: true }
  if (mode === 'required') throw unauthorized('This server needs a login.')
  const name = isGiven(claimed.userId) ? 'userId' : 'client_id'
  const claim = claimed[name]
  if (!isGiven(claim)) return { userId: anonymous, loggedIn: false, named: false }
  // An invalid claim must not count as no claim, because a request without a claim acts as the owner of what it addresses.
  if (typeof claim !== 'string' || claim.trim().length > userCharsMax) {
    throw new AppError('invalid_request', `${name}: must be a text of at most ${userCharsMax} characters.`)
  }
  if (!claim.isWellFormed()) {
    throw new AppError(
      'invalid_request',
      `${name}: holds half of a character (an unpaired surrogate); send whole ones.`,
    )
  }
  return { userId: claim.trim(), loggedIn: false, named: true }
}
