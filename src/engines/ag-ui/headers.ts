// The headers of requests to a remote agent. A value may come from the environment, so that
// no secret stands in a definition; it is read for each request and never shown.

export type HeaderValue = string | { env: string }
export type HeaderSettings = Readonly<Record<string, HeaderValue>>
export type HeaderEnvironment = Readonly<Record<string, string | undefined>>

/** Why requests with these headers cannot be sent, and what to do; null if they can. */
export function headersProblem(headers: HeaderSettings | undefined, environment: HeaderEnvironment): string | null {
  for (const [name, value] of Object.entries(headers ?? {})) {
    const text = valueOf(value, environment)
    if (typeof value === 'object' && (text === undefined || text === '')) {
      return `the header ${name} needs the environment variable ${value.env}, which is not set`
    }
    if (!isHeaderText(text ?? '')) {
      const source = typeof value === 'object' ? `the environment variable ${value.env}` : 'its value'
      return `the header ${name} cannot be sent, because ${source} has characters that a header cannot have`
    }
  }
  return null
}

export function headersOf(headers: HeaderSettings | undefined, environment: HeaderEnvironment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), valueOf(value, environment) ?? '']),
  )
}

/** Replaces the values of headers in a text that the remote side wrote, and shortens it to one line. */
export function withoutSecrets(text: string, headers: Readonly<Record<string, string>>, charsMax = 500): string {
  // Far longer than what is kept, so that no secret is cut in two there.
  let clean = text.slice(0, 64 * 1024)
  for (const value of Object.values(headers)) {
    // `Bearer TOKEN`: the token may stand there alone.
    for (const secret of [value, ...value.split(' ')]) {
      if (secret.length >= 4) clean = clean.replaceAll(secret, '[redacted]')
    }
  }
  const line = clean.replace(/\s+/g, ' ').trim()
  return line.length <= charsMax ? line : `${line.slice(0, charsMax).toWellFormed()}…`
}

function valueOf(value: HeaderValue, environment: HeaderEnvironment): string | undefined {
  return typeof value === 'string' ? value : environment[value.env]?.trim()
}

function isHeaderText(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
}
