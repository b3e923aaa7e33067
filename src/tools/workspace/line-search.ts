// Searches the lines of a text. Plain text is searched on the main thread; regular
// expressions run in the search pool, because a model chooses them.

import { type Hit, hitsIn } from './line-hits.ts'
import type { SearchPool } from './search-pool.ts'

export type LineSearch = (text: string, hitsMax: number) => Promise<Hit[]>

export function plainSearch(find: string, caseSensitive: boolean): LineSearch {
  const wanted = caseSensitive ? find : find.toLowerCase()
  return async (text, hitsMax) =>
    hitsIn(text, hitsMax, (line) => (caseSensitive ? line : line.toLowerCase()).indexOf(wanted))
}

export function regexSearch(pool: SearchPool, source: string, caseSensitive: boolean, signal: AbortSignal): LineSearch {
  return (text, hitsMax) => pool.search({ source, ignoreCase: !caseSensitive, text, hitsMax }, signal)
}
