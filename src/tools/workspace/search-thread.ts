// The worker thread in which fs_grep runs regular expressions. The regex engine takes time
// linear in the text, so no pattern can backtrack forever; the pool (search-pool.ts)
// terminates a thread that still takes too long.

import { parentPort } from 'node:worker_threads'
import { letMainThreadGoFirst } from '../../kit/thread-priority.ts'
import { linearPattern, type PatternResult } from '../../kit/schema/linear-pattern.ts'
import { type Hit, hitsIn } from './line-hits.ts'

export type SearchRequest = { source: string; ignoreCase: boolean; text: string; hitsMax: number }

export type SearchReply = { ok: true; hits: Hit[] } | { ok: false; reason: string }

letMainThreadGoFirst()

/** The last compiled pattern is kept, because one call searches many files with the same pattern. */
let compiled: { source: string; ignoreCase: boolean; result: PatternResult } | undefined

parentPort?.on('message', ({ source, ignoreCase, text, hitsMax }: SearchRequest) => {
  if (compiled?.source !== source || compiled.ignoreCase !== ignoreCase) {
    compiled = { source, ignoreCase, result: linearPattern(source, { ignoreCase }) }
  }
  const { result } = compiled
  const reply: SearchReply = result.ok
    ? { ok: true, hits: hitsIn(text, hitsMax, (line) => result.pattern.search(line)) }
    : result
  parentPort?.postMessage(reply)
})
