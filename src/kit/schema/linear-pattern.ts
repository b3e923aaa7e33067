// Runs untrusted regular expressions: those of schemas, and those that a model searches
// with. The engine (RE2) takes time proportional to text length times pattern size, so no
// text causes catastrophic backtracking. Features that it does not have (look-around,
// back-references) are refused with a reason.

import { RE2JS } from 're2js'
import { patternCost } from './pattern-cost.ts'

const patternCharsMax = 2_000
/** Instructions of the compiled program. `(a{100}){100}` is a short pattern with a large program. */
const programMax = 1_000
/** What compiling one pattern may cost, so that a pattern which is refused afterwards was cheap, too. */
const costMax = 10_000

export type LinearPattern = {
  /** The number of instructions. A search takes at most this many steps per character of the text. */
  readonly size: number
  test(text: string): boolean
  /** The index of the first match, or -1. */
  search(text: string): number
}

/** `cost` is about what it took to compile the pattern, in the units of `patternCost`. */
export type PatternResult =
  | { ok: true; pattern: LinearPattern; cost: number }
  | { ok: false; reason: string; cost: number }

/**
 * The results that a schema still uses. Compiling is expensive, and the schemas of agents repeat the same few patterns. Only
 * weak references, because a compiled pattern grows with the texts that it is used on.
 */
const inUse = new Map<string, WeakRef<PatternResult>>()
const inUseMax = 100

export function linearPattern(source: string, options: { ignoreCase?: boolean } = {}): PatternResult {
  if (source.length > patternCharsMax) return refused(`is longer than ${patternCharsMax} characters`, 0)
  const key = `${options.ignoreCase === true ? 'i' : ' '}${source}`
  const known = inUse.get(key)?.deref()
  if (known !== undefined) return known
  const result = compilePattern(source, options)
  const [oldest] = inUse.size < inUseMax ? [] : inUse.keys()
  if (oldest !== undefined) inUse.delete(oldest)
  inUse.set(key, new WeakRef(result))
  return result
}

function compilePattern(source: string, options: { ignoreCase?: boolean }): PatternResult {
  let cost = 0
  let program: RE2JS
  try {
    const translated = RE2JS.translateRegExp(escapeHyphens(source))
    cost = patternCost(translated, options)
    if (cost > costMax) return refused('takes too much work to compile', 0)
    program = RE2JS.compile(translated, options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : String(error)
    return refused(`cannot be used (${why.slice(0, 200)})`, cost)
  }
  const size = program.programSize()
  if (size > programMax) return refused('repeats too much', cost)
  return {
    ok: true,
    cost,
    pattern: {
      size,
      test: (text) => program.test(text),
      search(text) {
        if (!program.test(text)) return -1
        const matcher = program.matcher(text)
        return matcher.find() ? matcher.start() : -1
      },
    },
  }
}

function refused(why: string, cost: number): PatternResult {
  return { ok: false, reason: `the regular expression ${why}`, cost }
}

/** Escapes the hyphen in `[\w-.]`, which is common but strictly invalid: a class cannot begin a range, so the hyphen is literal. */
function escapeHyphens(source: string): string {
  return source.replaceAll(/(\\[wdsWDS])-(?!\])/g, '$1\\-')
}
