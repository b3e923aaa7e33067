// Patterns for file names: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of
// directories. The matcher is our own and not a regular expression, because a model chooses
// the pattern and must not be able to block the event loop: the pattern is parsed once,
// matching takes at most pattern length times name length, and the steps are counted so
// that a caller who matches many names can stop.

import { refused } from './refusal.ts'

const alternativesMax = 64
const lengthMax = 1000
/** The most characters of all `{a,b}` alternatives together, after expansion. */
const writtenOutMax = 4000

export type GlobPattern = {
  matches(path: string): boolean
  /** Comparisons so far, over all names. */
  readonly steps: number
}

/** `**`, or the pattern for one name between slashes. */
type Part = 'any directories' | readonly Sign[]

type Sign = { kind: 'star' } | { kind: 'one' } | { kind: 'char'; char: string } | CharSet

type CharSet = { kind: 'set'; negated: boolean; ranges: readonly (readonly [low: string, high: string])[] }

export function globPattern(pattern: string): GlobPattern {
  if (pattern.length > lengthMax) throw refused('The pattern is too long.')
  const alternatives = expand(pattern).map(partsOf)
  const counter = { steps: 0 }
  return {
    matches(path) {
      const names = path.split('/')
      return alternatives.some((parts) => pathMatches(parts, names, counter))
    },
    get steps() {
      return counter.steps
    },
  }
}

/** Expands `{a,b}` into all alternatives, the innermost braces first. */
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
  if (done.reduce((sum, one) => sum + one.length, 0) > writtenOutMax) {
    throw refused('The pattern has alternatives that are too long.')
  }
  return done
}

function partsOf(alternative: string): Part[] {
  const parts: Part[] = []
  for (const part of alternative.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '**') parts.push(signsOf(part))
    // `**/**` means the same as `**`.
    else if (parts.at(-1) !== 'any directories') parts.push('any directories')
  }
  return parts
}

function signsOf(part: string): Sign[] {
  const signs: Sign[] = []
  // Found once, so that a part with many opening brackets does not take quadratic time.
  const lastClosing = part.lastIndexOf(']')
  for (let at = 0; at < part.length; at += 1) {
    const char = part[at] ?? ''
    if (char === '*') {
      if (signs.at(-1)?.kind !== 'star') signs.push({ kind: 'star' })
    } else if (char === '?') signs.push({ kind: 'one' })
    else if (char === '[' && lastClosing >= at + 2) {
      const end = part.indexOf(']', at + 2)
      signs.push(setOf(part.slice(at + 1, end)))
      at = end
    } else signs.push({ kind: 'char', char })
  }
  return signs
}

function setOf(inner: string): CharSet {
  const negated = inner.startsWith('!') || inner.startsWith('^')
  const set = negated ? inner.slice(1) : inner
  const ranges: [string, string][] = []
  for (let i = 0; i < set.length; i += 1) {
    const low = set[i] ?? ''
    if (set[i + 1] === '-' && i + 2 < set.length) {
      ranges.push([low, set[i + 2] ?? ''])
      i += 2
    } else ranges.push([low, low])
  }
  return { kind: 'set', negated, ranges }
}

type Counter = { steps: number }

/** Dynamic programming from the end: `rest[j]` says whether the parts from here on match the names from j on. */
function pathMatches(parts: readonly Part[], names: readonly string[], counter: Counter): boolean {
  let rest = Array.from({ length: names.length + 1 }, (_, j) => j === names.length)
  for (const part of parts.toReversed()) {
    const next = Array.from({ length: names.length + 1 }, () => false)
    for (let j = names.length; j >= 0; j -= 1) {
      counter.steps += 1
      if (part === 'any directories') next[j] = rest[j] === true || (j < names.length && next[j + 1] === true)
      else next[j] = j < names.length && rest[j + 1] === true && nameMatches(part, names[j] ?? '', counter)
    }
    rest = next
  }
  return rest[0] === true
}

function nameMatches(signs: readonly Sign[], name: string, counter: Counter): boolean {
  let s = 0
  let n = 0
  let star = -1
  let starAt = 0
  while (n < name.length) {
    const sign = signs[s]
    if (sign?.kind === 'star') {
      star = s
      starAt = n
      s += 1
    } else if (sign !== undefined && charMatches(sign, name[n] ?? '', counter)) {
      s += 1
      n += 1
    } else if (star >= 0) {
      // Backtrack: the last star matches one more character. Earlier stars need not be tried again.
      starAt += 1
      n = starAt
      s = star + 1
    } else return false
  }
  while (signs[s]?.kind === 'star') s += 1
  return s >= signs.length
}

function charMatches(sign: Exclude<Sign, { kind: 'star' }>, char: string, counter: Counter): boolean {
  counter.steps += 1
  if (sign.kind === 'one') return true
  if (sign.kind === 'char') return sign.char === char
  counter.steps += sign.ranges.length
  return sign.ranges.some(([low, high]) => low <= char && char <= high) !== sign.negated
}
