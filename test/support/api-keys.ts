// The value of POLYLOG_API_KEYS for the keys of some users.

import { createHash } from 'node:crypto'

/** `keys` has the key of each user. */
export function apiKeysSetting(keys: Record<string, string>): string {
  return Object.entries(keys)
    .map(([user, key]) => `${user}=${hashOfKey(key)}`)
    .join(',')
}

export function hashOfKey(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
