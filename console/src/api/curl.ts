// The same call from a terminal, for empty states: with the address of this server and the user of the session. A login
// is never part of it.

import { session } from './session.ts'

type CurlCall = {
  method?: 'POST' | 'PATCH' | 'DELETE'
  body?: Record<string, unknown>
  /** More options, such as `-N` for a stream. */
  options?: string
}

export function useCurl(path: string, { method, body, options }: CurlCall = {}): string {
  const { token, user } = session.use()
  const isOpen = token === null && user !== null
  const query =
    isOpen && body === undefined ? `${path.includes('?') ? '&' : '?'}userId=${encodeURIComponent(user)}` : ''
  const parts = ['curl', options ?? '-s', ...(method === undefined ? [] : ['-X', method])]
  const lines = [`${parts.join(' ')} ${quoted(location.origin + path + query)}`]
  if (token !== null) lines.push("-H 'Authorization: Bearer YOUR_TOKEN'")
  if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'")
    lines.push(`-d ${quoted(JSON.stringify(isOpen ? { ...body, userId: user } : body))}`)
  }
  return lines.join(' \\\n  ')
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return /^[\w:/.-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
