// The text of an API key that `polylog keys` made. The prefix lets servers tell it from tokens without asking the
// database, and lets scanners find keys that were published by mistake.

import { createHash } from 'node:crypto'

const prefix = 'plk_'
/** As many as a hash of the key has. */
export const apiKeyBytes = 32
const pattern = /^plk_[\w-]{43}$/

export function apiKeyText(secret: Buffer): string {
  return prefix + secret.toString('base64url')
}

export function isApiKeyText(text: string): boolean {
  return pattern.test(text)
}

/** SHA-256 in hexadecimal digits. A key is random, so nothing slower is needed. */
export function hashOfApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
