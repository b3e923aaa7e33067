// Checks the signature and the claims of tokens (JWT). The algorithms are pinned: HS256 only with the shared secret,
// public-key algorithms only with the published keys, so that an attacker can never use a public key as a shared secret.

import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify, type JWTVerifyOptions } from 'jose'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'

export type JwtSettings = {
  /** The shared secret for HS256. */
  readonly jwtSecret: string | null
  readonly jwksUrl: string | null
  /** Not checked if null; the same holds for the audience. */
  readonly jwtIssuer: string | null
  readonly jwtAudience: string | null
  /** Should stay false: a token without `exp` never expires, so a leaked one stays valid for ever. */
  readonly allowTokensWithoutExp: boolean
}

// Passed to jose as `algorithms`. Without it the token itself would choose how it is verified.
const sharedSecretAlgorithms = ['HS256']
const publicKeyAlgorithms = ['RS256', 'ES256', 'EdDSA']

/** The returned function gives the user of a token. It throws as `authenticate` of an authenticator does. */
export function createJwtVerifier(auth: JwtSettings, clock: Clock): (token: string) => Promise<string> {
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
