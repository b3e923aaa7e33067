// Shortens texts of unknown length for sentences that people read: one line, cut, in quotes.
// `textField` reads arguments that may not have been checked yet, because a call that will
// be refused is described to people too.

import type { JsonValue } from '../journal/event.ts'

/** About two lines of a dialog. */
const excerptCharsMax = 120
const argumentsCharsMax = 300

export function excerpt(text: string, charsMax = excerptCharsMax): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  // Cut by code points, so that no surrogate pair is split.
  const points = Array.from(line.slice(0, charsMax * 2 + 2))
  return points.length <= charsMax
    ? line
    : `${points
        .slice(0, charsMax - 1)
        .join('')
        .trimEnd()}…`
}

export function quoted(text: string, charsMax = excerptCharsMax): string {
  return `“${excerpt(text, charsMax)}”`
}

/** The field if it is a string, else an empty string. */
export function textField(input: JsonValue, name: string): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return ''
  const value = input[name]
  return typeof value === 'string' ? value : ''
}

/** For example `with amount: 5, card: “x”`; long arguments are cut. Fields behind the cut are not written at all. */
export function withArguments(input: JsonValue): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return ''
  let list = ''
  for (const name of Object.keys(input)) {
    const value = input[name]!
    const text = typeof value === 'string' ? quoted(value, 80) : excerpt(JSON.stringify(value), 80)
    list += `${list === '' ? '' : ', '}${excerpt(name, 80)}: ${text}`
    if (list.length > argumentsCharsMax * 2) break // an excerpt is counted in code points, which have one or two characters
  }
  return list === '' ? '' : ` with ${excerpt(list, argumentsCharsMax)}`
}
