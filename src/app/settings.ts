// Reads single settings from the environment and collects all problems, so that an operator
// can correct them at once. An empty value counts as unset. A problem never contains the
// value of a secret.

export type Problem = { variable: string; message: string }

type Environment = Record<string, string | undefined>

const booleans: Record<string, boolean> = {
  true: true,
  1: true,
  yes: true,
  on: true,
  false: false,
  0: false,
  no: false,
  off: false,
}

export class SettingReader {
  readonly problems: Problem[] = []
  /** Every name that was read. Any other variable with our prefix is a misspelling. */
  readonly known = new Set<string>()
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  text(variable: string): string | null {
    const value = this.#raw(variable)?.trim()
    return value === undefined || value === '' ? null : value
  }

  /** Not trimmed, because spaces at the ends may belong to the secret. */
  secret(variable: string): string | null {
    const value = this.#raw(variable)
    return value === undefined || value.trim() === '' ? null : value
  }

  oneOf<const T extends string>(variable: string, allowed: readonly T[]): T | null {
    const value = this.text(variable)
    if (value === null) return null
    const found = allowed.find((candidate) => candidate === value.toLowerCase())
    if (found === undefined) this.refuse(variable, value, `one of ${allowed.join(', ')}`)
    return found ?? null
  }

  boolean(variable: string, fallback: boolean): boolean {
    const value = this.text(variable)
    if (value === null) return fallback
    const found = booleans[value.toLowerCase()]
    if (found === undefined) this.refuse(variable, value, 'true or false')
    return found ?? fallback
  }

  whole(variable: string, fallback: number, least: number, most: number): number {
    const value = this.text(variable)
    if (value === null) return fallback
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    this.refuse(variable, value, `a whole number from ${least} to ${most}`)
    return fallback
  }

  decimal(variable: string, fallback: number, least: number, most: number): number {
    const value = this.text(variable)
    if (value === null) return fallback
    const number = Number(value)
    if (/^\d+(\.\d+)?$/.test(value) && number >= least && number <= most) return number
    this.refuse(variable, value, `a number from ${least} to ${most}`)
    return fallback
  }

  url(variable: string, schemes: readonly string[] = ['http', 'https']): string | null {
    const value = this.text(variable)
    if (value === null) return null
    if (URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1))) return value
    // Not shown: a URL may contain a password, which cannot be removed reliably if the URL does not parse.
    this.refuse(variable, null, `a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`)
    return null
  }

  list(variable: string): string[] {
    const parts = (this.text(variable) ?? '').split(',').map((part) => part.trim())
    return parts.filter((part) => part !== '')
  }

  /** `given` is null if the value must not be shown. */
  refuse(variable: string, given: string | null, allowed: string): void {
    const said = given === null ? 'has a value that is not shown here' : `is ${JSON.stringify(cut(given))}`
    this.problem(variable, `${variable} ${said}; it must be ${allowed}.`)
  }

  problem(variable: string, message: string): void {
    this.problems.push({ variable, message })
  }

  #raw(variable: string): string | undefined {
    this.known.add(variable)
    return this.#environment[variable]
  }
}

function cut(value: string): string {
  return value.length <= 80 ? value : `${value.slice(0, 79)}…`
}

/** A URL without its user name, password and query, for logs. */
export function urlWithoutSecrets(value: string | null): string | null {
  if (value === null) return null
  if (!URL.canParse(value)) return '(not a URL)'
  const url = new URL(value)
  return `${url.protocol}//${url.host}${url.pathname}`
}
