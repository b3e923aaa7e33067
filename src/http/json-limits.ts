// Limits the depth and the number of values of a JSON text before it is parsed. A body
// within its byte limit can still hold a million values or levels, and every later step
// (parsing, schemas, error messages) pays for each of them. The check is one pass over the
// text, without recursion; strings are skipped with indexOf.

import { AppError } from '../errors/app-error.ts'

export type JsonLimits = {
  /** Levels of lists and objects. Schemas and serializers recurse once per level. */
  readonly depth: number
  /** Values in the whole text. */
  readonly values: number
  /** Entries of one list, or fields of one object. */
  readonly entries: number
  /** Characters of one field name, since error messages repeat it. */
  readonly keyChars: number
}

/** Real requests are far smaller (a history of 10,000 messages fits), and a body of this size is still harmless. */
export const jsonLimits: JsonLimits = { depth: 64, values: 100_000, entries: 10_000, keyChars: 1000 }

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Is told about the lists that are values of the outermost object. `values` counts those of the whole text before `at`. */
export interface ListObserver {
  open(at: number, values: number): void
  comma(at: number, values: number): void
  close(at: number, values: number): void
}

/** Throws `body_too_complex`. Does not check the syntax: a text that is not JSON may pass. */
export function checkJsonSize(text: string, limits: JsonLimits = jsonLimits): void {
  for (const _part of scanJson(text, limits, text.length + 1));
}

/** As `checkJsonSize`, in parts of about `partChars` characters. */
export function* scanJson(
  text: string,
  limits: JsonLimits,
  partChars: number,
  observer?: ListObserver,
): Generator<undefined, void> {
  let partEnd = partChars
  let isInObject = false
  let isInList = false
  const entries = new Uint32Array(limits.depth + 1)
  let depth = 0
  let values = 1
  let stringChars = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = endOfString(text, at)
        stringChars = end - at - 1
        at = end
        break
      }
      case openBracket:
      case openBrace:
        depth += 1
        values += 1
        if (depth > limits.depth) throw tooComplex(`more than ${limits.depth} levels of lists and objects`)
        entries[depth] = 1
        if (depth === 1) isInObject = text.charCodeAt(at) === openBrace
        if (depth === 2) {
          isInList = isInObject && text.charCodeAt(at) === openBracket
          if (isInList) observer?.open(at, values)
        }
        break
      case closeBracket:
      case closeBrace:
        if (depth === 2 && isInList) observer?.close(at, values)
        if (depth > 0) depth -= 1
        break
      case comma: {
        values += 1
        const count = (entries[depth] ?? 0) + 1
        entries[depth] = count
        if (count > limits.entries) throw tooComplex(`a list or object with more than ${limits.entries} entries`)
        if (depth === 2 && isInList) observer?.comma(at, values)
        break
      }
      case colon:
        if (stringChars > limits.keyChars) throw tooComplex(`a field name of more than ${limits.keyChars} characters`)
        break
      default:
    }
    if (values > limits.values) throw tooComplex(`more than ${limits.values} values`)
    if (at >= partEnd) {
      partEnd = at + partChars
      yield
    }
  }
}

/** The index of the quote that ends the string starting at `start`, or the length of the text if there is none. */
function endOfString(text: string, start: number): number {
  let at = start
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes += 1
    if (escapes % 2 === 0) return at
  }
}

export function tooComplex(what: string): AppError {
  return new AppError('body_too_complex', `The body has ${what}, which this server does not accept; send less at once.`)
}
