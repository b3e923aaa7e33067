// The hosts from which the server may fetch files that a message names by URL. An entry is `host`, `host:port`
// or `*.host` for all names below it, fetched by https; with `http://` before it, by http. Pure.

import { isIP } from 'node:net'

type Entry = { protocol: 'http:' | 'https:'; host: string; port: string; wildcard: boolean }

/** `names`: the entry is the very name or address, not a wildcard. Then the operator has chosen its address, too. */
export type AllowedHost = { names: boolean }

export class AllowedHosts {
  private readonly entries: readonly Entry[]

  /** Entries must have been checked with `allowedHostProblem`. */
  constructor(entries: readonly string[]) {
    this.entries = entries.map(entryOf).filter((entry) => entry !== undefined)
  }

  /** Undefined if the URL is not allowed. */
  find(url: URL): AllowedHost | undefined {
    if (url.username !== '' || url.password !== '') return undefined
    const found = this.entries.find(
      ({ protocol, host, port, wildcard }) =>
        url.protocol === protocol &&
        url.port === port &&
        (wildcard ? url.hostname.endsWith(`.${host}`) && isIP(url.hostname) === 0 : url.hostname === host),
    )
    return found === undefined ? undefined : { names: !found.wildcard }
  }
}

/** Null, or what is wrong with an entry. */
export function allowedHostProblem(entry: string): string | null {
  return entryOf(entry) === undefined
    ? 'must be a host name such as cdn.example.com, *.example.com or localhost:8080, optionally with http:// before it'
    : null
}

function entryOf(text: string): Entry | undefined {
  const [, scheme = 'https://', star, rest = ''] = /^(https?:\/\/)?(\*\.)?(.+)$/i.exec(text.trim()) ?? []
  if (/[/?#@*\s]/.test(rest)) return undefined
  const url = URL.parse(`${scheme}${rest}`)
  if (url === null || url.hostname === '') return undefined
  const protocol = url.protocol === 'http:' ? 'http:' : 'https:'
  return { protocol, host: url.hostname, port: url.port, wildcard: star !== undefined }
}
