// Reads single settings from the environment or, if it does not set one, from the
// configuration file, and collects all problems, so that an operator can correct them at
// once. An empty value counts as unset. A problem never contains the value of a secret.

import { resolve } from 'node:path'
import { fileNameOf } from './setting-names.ts'
import { type ChoiceOf, type NamesOf, type SettingName, settingTable } from './setting-table.ts'

export type Problem = { variable: string; message: string }

/** The settings of a configuration file, written as their variables would be. */
export type FileSettings = {
  values: ReadonlyMap<SettingName, string>
  /** Relative paths start here. */
  folder: string
  /** Where a setting stands, such as `polylog.config.ts:12`. Null if that is not known. */
  placeOf(key: string): string | null
  /** What is wrong with the file itself. */
  problems: readonly Problem[]
}

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
  readonly problems: Problem[]
  readonly #environment: Environment
  readonly #file: FileSettings | undefined

  constructor(environment: Environment, file?: FileSettings) {
    this.#environment = environment
    this.#file = file
    this.problems = [...(file?.problems ?? [])]
  }

  text(variable: NamesOf<'text'>): string | null {
    return this.#trimmed(variable)
  }

  /** A setting with a syntax of its own. */
  mixed(variable: NamesOf<'mixed'>): string | null {
    return this.#trimmed(variable)
  }

  secret(variable: NamesOf<'secret'>): string | null {
    const value = this.#raw(variable)
    return value === undefined || value.trim() === '' ? null : value
  }

  /** An absolute path. */
  path(variable: NamesOf<'path'>): string | null {
    const value = this.#trimmed(variable)
    if (value === null) return null
    return this.isFromFile(variable) ? resolve(this.#file?.folder ?? '', value) : resolve(value)
  }

  oneOf<Name extends NamesOf<'oneOf'>>(variable: Name): ChoiceOf<Name> | null {
    const value = this.#trimmed(variable)
    if (value === null) return null
    const allowed: readonly ChoiceOf<Name>[] = settingTable[variable].allowed
    const found = allowed.find((candidate) => candidate === value.toLowerCase())
    if (found === undefined) this.refuse(variable, value, `one of ${allowed.join(', ')}`)
    return found ?? null
  }

  boolean(variable: NamesOf<'boolean'>, fallback: boolean): boolean {
    const value = this.#trimmed(variable)
    if (value === null) return fallback
    const found = booleans[value.toLowerCase()]
    if (found === undefined) this.refuse(variable, value, 'true or false')
    return found ?? fallback
  }

  whole(variable: NamesOf<'whole'>, fallback: number): number {
    const value = this.#trimmed(variable)
    if (value === null) return fallback
    const { least, most } = settingTable[variable]
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    this.refuse(variable, value, `a whole number from ${least} to ${most}`)
    return fallback
  }

  decimal(variable: NamesOf<'decimal'>, fallback: number): number {
    const value = this.#trimmed(variable)
    if (value === null) return fallback
    const { least, most } = settingTable[variable]
    const number = Number(value)
    if (/^\d+(\.\d+)?$/.test(value) && number >= least && number <= most) return number
    this.refuse(variable, value, `a number from ${least} to ${most}`)
    return fallback
  }

  url(variable: NamesOf<'url'>): string | null {
    const value = this.#trimmed(variable)
    if (value === null) return null
    const { schemes } = settingTable[variable]
    if (URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1))) return value
    // Not shown: a URL may contain a password, which cannot be removed reliably if the URL does not parse.
    this.refuse(variable, null, `a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`)
    return null
  }

  list(variable: NamesOf<'list'>): string[] {
    const parts = (this.#trimmed(variable) ?? '').split(',').map((part) => part.trim())
    return parts.filter((part) => part !== '')
  }

  /** Whether the value comes from the configuration file, because the environment does not set it. */
  isFromFile(variable: SettingName): boolean {
    return isBlank(this.#environment[variable]) && this.#file?.values.has(variable) === true
  }

  /** `given` is null if the value must not be shown. */
  refuse(variable: SettingName, given: string | null, allowed: string): void {
    const said = given === null ? 'has a value that is not shown here' : `is ${JSON.stringify(cut(given))}`
    this.problem(variable, `${this.#shownName(variable)} ${said}; it must be ${allowed}.`)
  }

  problem(variable: string, message: string): void {
    this.problems.push({ variable, message })
  }

  #trimmed(variable: SettingName): string | null {
    const value = this.#raw(variable)?.trim()
    return value === undefined || value === '' ? null : value
  }

  #raw(variable: SettingName): string | undefined {
    const value = this.#environment[variable]
    return isBlank(value) ? this.#file?.values.get(variable) : value
  }

  #shownName(variable: SettingName): string {
    if (!this.isFromFile(variable)) return variable
    const key = fileNameOf(variable)
    const place = this.#file?.placeOf(key) ?? null
    return place === null ? key : `${key} (${place})`
  }
}

function isBlank(value: string | undefined): boolean {
  return value === undefined || value.trim() === ''
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
