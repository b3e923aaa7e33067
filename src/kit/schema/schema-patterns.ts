// The regular expressions of one schema. A pattern is compiled when it is first needed and
// kept, because compiling is the most expensive part: a server may list hundreds of tools
// whose patterns are never used.

import { type LinearPattern, linearPattern, type PatternResult } from './linear-pattern.ts'
import type { Steps } from './steps.ts'

export class SchemaPatterns {
  readonly #results = new Map<string, PatternResult>()

  /** Undefined if the pattern cannot be used. The first use spends the steps of compiling it. */
  find(source: string, steps: Steps): LinearPattern | undefined {
    const known = this.#results.get(source)
    const result = known ?? this.compile(source)
    if (known === undefined) steps.spend(result.cost)
    return result.ok ? result.pattern : undefined
  }

  compile(source: string): PatternResult {
    const result = linearPattern(source)
    this.#results.set(source, result)
    return result
  }
}
