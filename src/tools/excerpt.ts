// Texts of unknown length in sentences for people: on one line, cut, in quotes. And
// the fields of arguments that nobody has checked yet, since a sentence is also
// wanted about a call that will be refused.

import type { JsonValue } from '../journal/event.ts'

/** About what fits on two lines of a dialog. */
const excerptCharsMax = 120

export function excerpt(text: string, charsMax = excerptCharsMax): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  // By code points, so that no character is cut in half.
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

/** The field as text, or an empty string. */
export function textField(input: JsonValue, name: string): string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return ''
  const value = input[name]
  return typeof value === 'string' ? value : ''
}
