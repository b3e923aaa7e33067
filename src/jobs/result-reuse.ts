// Which jobs are the same request, and which results may be given to the next one. The
// key covers everything that the result depends on and that we can see: the owner is
// compared by the store.

import { createHash } from 'node:crypto'
import type { JobSpec, SkillSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { sortedJson } from '../kit/sorted-json.ts'

export type CachedRequest = {
  skill: SkillSpec
  engine: string
  model: string
  job: Pick<JobSpec, 'input' | 'parameter'>
  /** What was uploaded. */
  files: readonly { path: string; sha256: string }[]
}

/** Two requests with the same key get the same result. Changes whenever its parts change their meaning. */
const keyVersion = 1

export function cacheKeyOf({ skill, engine, model, job, files }: CachedRequest): string {
  const request = {
    keyVersion,
    skill,
    engine,
    model,
    input: job.input,
    parameter: job.parameter,
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  }
  return sha256(sortedJson(request))
}

export function sha256(body: string | Uint8Array): string {
  return createHash('sha256').update(body).digest('hex')
}

/** A job that asks people, that opts out, or whose skill is uploaded for it alone, is a new request every time. */
export function mayReuse(job: Pick<JobSpec, 'source' | 'mode' | 'options'>): boolean {
  return job.source === 'installed' && job.mode === 'auto' && job.options['no_cache'] !== true
}

/**
 * Whether the result of a succeeded run says all there is to say about it. A run that changed something outside itself, or
 * that a person decided in, has done more than its result: the next request must do that too.
 */
export function isReusable(state: RunState): boolean {
  if (state.interactions.size > 0) return false
  return [...state.calls.values()].every((call) => call.effect === 'read' || call.name === 'save_artifact')
}
