// Protects the server against foreign web pages (DNS rebinding and CSRF). A browser on the
// operator's machine can reach a server on loopback, and any page can make it send requests.
// `Host` is checked on every request, because in DNS rebinding the name of the page resolves
// to our address. `Origin` and `Sec-Fetch-Site` are checked on every request that may change
// something. Clients that are not browsers do not send these two.

import { isIP } from 'node:net'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { AppError } from '../errors/app-error.ts'
import { isLoopback } from '../kit/loopback.ts'

export type BrowserRules = {
  /** The address on which the server listens. */
  readonly listenHost: string
  /** Additional host names: `app.example.com`, `*.example.com` for all subdomains, `*` for all names. */
  readonly allowedHosts: readonly string[]
  /** The origins of web pages that may send changing requests, or `*`. */
  readonly corsOrigins: readonly string[]
}

export interface BrowserGuard {
  /** Throws `host_invalid` or `host_not_allowed`. `forwarded` is the host that the client used, if a trusted proxy names it. */
  checkHost(
    request: Pick<IncomingMessage, 'rawHeaders' | 'httpVersionMajor' | 'httpVersionMinor'>,
    forwarded?: string,
  ): void
  /** Throws `origin_not_allowed`. `host` is the host that the client used, even behind a trusted proxy. */
  checkOrigin(request: { method: string; headers: IncomingHttpHeaders; host: string | undefined }): void
}

/** A server that listens on one of these listens on every address of the machine. */
const everyAddress = new Set(['0.0.0.0', '::'])
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Error messages repeat at most this much of a header. */
const shownChars = 100

export function createBrowserGuard({ listenHost, allowedHosts, corsOrigins }: BrowserRules): BrowserGuard {
  const isAllowedHost = hostMatcher(listenHost, allowedHosts)
  const origins = new Set(corsOrigins.map((origin) => origin.toLowerCase()))
  /** The last header that was allowed. Nearly all requests have the same one, and parsing it takes as long as routing. */
  let lastAllowed: string | undefined

  function checkName(header: string): void {
    if (header === lastAllowed) return
    const name = hostNameOf(header)
    if (name === null) throw new AppError('host_invalid', 'The Host header is not a host name with an optional port.')
    if (isAllowedHost(name)) {
      lastAllowed = header
      return
    }
    throw new AppError(
      'host_not_allowed',
      `This server is not called ${quoted(name)}. If it is, add the name to POLYLOG_ALLOWED_HOSTS and start it again.`,
    )
  }

  return {
    checkHost({ rawHeaders, httpVersionMajor, httpVersionMinor }, forwarded) {
      // A proxy that replaces Host also passes on requests of pages whose name resolves to it.
      if (forwarded !== undefined) checkName(forwarded)
      const given = valuesOf(rawHeaders, 'host')
      const [header] = given
      if (header === undefined) {
        // HTTP/1.0 has no Host header. Simple health checks use it; browsers do not.
        if (httpVersionMajor === 1 && httpVersionMinor === 0) return
        throw new AppError('host_invalid', 'The request has no Host header; send one.')
      }
      if (given.length > 1) throw new AppError('host_invalid', 'The request has two Host headers; send one.')
      checkName(header)
    },

    checkOrigin({ method, headers, host }) {
      if (safeMethods.has(method) || origins.has('*')) return
      const { origin } = headers
      if (origin !== undefined && origins.has(origin.toLowerCase())) return
      const site = headers['sec-fetch-site']
      const isForeignSite = site === 'cross-site' || site === 'same-site'
      if (!isForeignSite && (origin === undefined || isSameOrigin(origin, host))) return
      const page = origin === undefined ? 'another site' : quoted(origin)
      throw new AppError(
        'origin_not_allowed',
        `A web page of ${page} may not change anything here. If the page is yours, add its origin to ` +
          'POLYLOG_CORS_ORIGINS and start the server again.',
      )
    },
  }
}

function hostMatcher(listenHost: string, allowed: readonly string[]): (name: string) => boolean {
  const names = new Set([listenHost, ...allowed].map((entry) => hostNameOf(bracketed(entry)) ?? entry.toLowerCase()))
  const suffixes = allowed.filter((entry) => entry.startsWith('*.')).map((entry) => entry.slice(1).toLowerCase())
  const isEveryName = allowed.includes('*')
  // An IP address in Host is safe: in DNS rebinding, Host has the name of the foreign page.
  const isEveryAddress = everyAddress.has(listenHost)
  return (name) =>
    isEveryName ||
    names.has(name) ||
    isLoopback(name) ||
    (isEveryAddress && isIP(name) !== 0) ||
    suffixes.some((suffix) => name.endsWith(suffix))
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}

/** The normalised name in a Host header: lower case, without port, brackets and trailing dot. Null if it is not valid. */
function hostNameOf(header: string): string | null {
  if (!/^[^\s/?#@\\,]+$/.test(header) || !URL.canParse(`http://${header}`)) return null
  const { hostname } = new URL(`http://${header}`)
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Compares only host and port: behind a proxy that terminates TLS we do not know our own scheme. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const page = new URL(origin)
  const here = `${page.protocol}//${host}`
  return page.host !== '' && URL.canParse(here) && new URL(here).host === page.host
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const given = rawHeaders[at] as string
    if (given.length === name.length && given.toLowerCase() === name) values.push(rawHeaders[at + 1] as string)
  }
  return values
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, shownChars))
}
