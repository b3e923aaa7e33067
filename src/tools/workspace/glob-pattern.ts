// Patterns for file names: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of
// directories. Own code rather than regular expressions, since a pattern comes from
// a model and must not be able to keep the server busy: matching takes time
// proportional to pattern times name.

import { refused } from './refusal.ts'

const alternativesMax = 64
const lengthMax = 1000

export type GlobPattern = { matches(path: string): boolean }

export function globPattern(pattern: string): GlobPattern {
  if (pattern.length > lengthMax) throw refused('The pattern is too long.')
  const alternatives = expand(pattern).map((one) => one.split('/').filter((part) => part !== '' && part !== '.'))
  return { matches: (path) => alternatives.some((parts) => pathMatches(parts, path.split('/'))) }
}

/** `{a,b}` written out, the innermost first. */
function expand(pattern: string): string[] {
  const open: string[] = [pattern]
  const done: string[] = []
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const braces = /\{([^{}]*,[^{}]*)\}/.exec(one)
    if (braces === null) done.push(one)
    else {
      for (const choice of (braces[1] ?? '').split(',')) {
        open.push(one.slice(0, braces.index) + choice + one.slice(braces.index + braces[0].length))
      }
    }
    if (open.length + done.length > alternativesMax) throw refused('The pattern has too many alternatives.')
  }
  return done
}

/** From the end: `rest[j]` says whether the parts from here on match the names from j on. */
function pathMatches(parts: string[], names: string[]): boolean {
  let rest = Array.from({ length: names.length + 1 }, (_, j) => j === names.length)
  for (const part of parts.toReversed()) {
    const next = Array.from({ length: names.length + 1 }, () => false)
    for (let j = names.length; j >= 0; j -= 1) {
      if (part === '**') next[j] = rest[j] === true || (j < names.length && next[j + 1] === true)
      else next[j] = j < names.length && rest[j + 1] === true && nameMatches(part, names[j] ?? '')
    }
    rest = next
  }
  return rest[0] === true
}

function nameMatches(pattern: string, name: string): boolean {
  let p = 0
  let n = 0
  let star = -1
  let starAt = 0
  while (n < name.length) {
    const step = p < pattern.length && pattern[p] !== '*' ? oneMatches(pattern, p, name[n] ?? '') : 0
    if (p < pattern.length && pattern[p] === '*') {
      star = p
      starAt = n
      p += 1
    } else if (step > 0) {
      p += step
      n += 1
    } else if (star >= 0) {
      // The last star takes one more; earlier ones need not be tried again.
      starAt += 1
      n = starAt
      p = star + 1
    } else return false
  }
  while (pattern[p] === '*') p += 1
  return p >= pattern.length
}

/** How many characters of the pattern stand for this one character; 0 where they do not. */
function oneMatches(pattern: string, at: number, char: string): number {
  const sign = pattern[at]
  if (sign === '?') return 1
  if (sign !== '[') return sign === char ? 1 : 0
  const end = pattern.indexOf(']', at + 2)
  if (end < 0) return char === '[' ? 1 : 0
  const negated = pattern[at + 1] === '!' || pattern[at + 1] === '^'
  const set = pattern.slice(at + (negated ? 2 : 1), end)
  let found = false
  for (let i = 0; i < set.length; i += 1) {
    const low = set[i] ?? ''
    if (set[i + 1] === '-' && i + 2 < set.length) {
      found ||= low <= char && char <= (set[i + 2] ?? '')
      i += 2
    } else found ||= low === char
  }
  return found === negated ? 0 : end - at + 1
}
