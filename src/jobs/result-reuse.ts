// Decides which jobs are equal requests and which results may be reused. The cache key covers
// every known input of the result except the owner, whom the store compares.

import { createHash } from 'node:crypto'
import type { JobSpec, SkillSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { sortedJson } from '../kit/sorted-json.ts'

export type CachedRequest = {
  skill: SkillSpec
  engine: string
  model: string
  job: Pick<JobSpec, 'input' | 'parameter'>
  /** The uploaded files. */
  files: readonly { path: string; sha256: string }[]
}

/** Part of every cache key. Increase it when the meaning of a field in the key changes. */
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

/** False if the job is interactive, opts out with `no_cache`, or uses an uploaded skill. */
export function mayReuse(job: Pick<JobSpec, 'source' | 'mode' | 'options'>): boolean {
  return job.source === 'installed' && job.mode === 'auto' && job.options['no_cache'] !== true
}

/**
 * Whether the result of a succeeded run may be reused. It may not if a tool had side effects or a person took part, because
 * an equal request has to repeat those too.
 */
export function isReusable(state: RunState): boolean {
  if (state.interactions.size > 0) return false
  return [...state.calls.values()].every((call) => call.effect === 'read' || call.name === 'save_artifact')
}
