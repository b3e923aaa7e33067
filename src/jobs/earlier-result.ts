// Finds the result of an earlier job that had the same request and the same upload. The result
// is copied into the new job, so that it does not disappear when the earlier job is removed.

import type { EventData } from '../journal/event.ts'
import { readRunState } from '../journal/event-pages.ts'
import type { RunStore } from '../stores/run-store.ts'
import { artifactsOf } from './job-artifacts.ts'
import { artifactBlob, artifactsFolder } from './job-files.ts'

type Reused = NonNullable<EventData<'run.prepared'>['reused']>

/** Limits, because the copy has to fit into one event and one transaction. A job with a larger result runs again. */
const outputCharsMax = 256 * 1024
const artifactCharsMax = 4 * 1024 * 1024

/** Undefined if there is no such result, if it is too large, or if a part of it is missing. */
export async function findEarlierResult(
  store: Pick<RunStore, 'findCached' | 'readEvents' | 'readBlob'>,
  owner: string,
  cacheKey: string,
  forRun: string,
): Promise<{ reused: Reused; blobs: { id: string; body: string }[] } | undefined> {
  const runId = await store.findCached(owner, cacheKey)
  if (runId === undefined) return undefined
  const state = await readRunState(store, runId)
  const output = state.ended?.output
  if (state.ended?.status !== 'succeeded' || output === undefined || output.length > outputCharsMax) return undefined
  const artifacts = artifactsOf(state)
  const blobs: { id: string; body: string }[] = []
  let room = artifactCharsMax
  for (const { path } of artifacts) {
    const name = path.slice(artifactsFolder.length)
    const body = (await store.readBlob(artifactBlob(runId, name)))?.body
    if (body === undefined || (room -= body.length) < 0) return undefined
    blobs.push({ id: artifactBlob(forRun, name), body })
  }
  return { reused: { runId, output, artifacts }, blobs }
}
