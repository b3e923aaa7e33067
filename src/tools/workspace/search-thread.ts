// A thread in which fs_grep tries regular expressions. The engine is linear in the text,
// so that even the worst pattern gets on; the pool (search-pool.ts) ends a thread that
// takes too long all the same.

import { parentPort } from 'node:worker_threads'
import { linearPattern, type PatternResult } from '../../kit/schema/linear-pattern.ts'
import { type Hit, hitsIn } from './line-hits.ts'

export type SearchRequest = { source: string; ignoreCase: boolean; text: string; hitsMax: number }

export type SearchReply = { ok: true; hits: Hit[] } | { ok: false; reason: string }

/** One call searches many files with the same pattern. */
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
