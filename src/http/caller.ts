// Authentication: finds the user of a request. A wrong credential is refused in both modes,
// because continuing as another user would hide the mistake.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '../errors/app-error.ts'
import { isApiKeyText } from '../kit/api-key.ts'
import type { Caller } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { JwtSettings } from './jwt-verifier.ts'

export type AuthMode = 'open' | 'required'

export type AuthSettings = JwtSettings & {
  readonly mode: AuthMode
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

export function hasAuthSecret(auth: AuthSettings): boolean {
  return auth.jwtSecret !== null || auth.jwksUrl !== null || auth.apiKeys.size > 0
}

export type AuthenticatorDependencies = {
  clock: Clock
  /** Keys in the database; absent if there is none. */
  storedKeys?: { find(key: string): Promise<string | undefined> }
}

export async function createAuthenticator(
  auth: AuthSettings,
  { clock, storedKeys }: AuthenticatorDependencies,
): Promise<Authenticator> {
  const findSetKey = apiKeyFinder(auth.apiKeys)
  const findApiKey = async (key: string) => findSetKey(key) ?? (await storedKeys?.find(key))
  const verifyJwt = await openJwtVerifier(auth, clock)
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

/** The library that checks tokens is loaded only if tokens are accepted. */
async function openJwtVerifier(auth: JwtSettings, clock: Clock): Promise<(token: string) => Promise<string>> {
  if (auth.jwtSecret === null && auth.jwksUrl === null) {
    return async () => {
      throw unauthorized('The API key is not known to this server.')
    }
  }
  const { createJwtVerifier } = await import('./jwt-verifier.ts')
  return createJwtVerifier(auth, clock)
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
