// The trace of a run. The span of a run is recorded when the run ends, perhaps by another process
// than the one that accepted it, so its id is chosen at acceptance and stored with the run.

import type { RunEvent } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { requestTraceparent } from '../kit/activity.ts'
import type { FutureSpan } from '../kit/tracer.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { runEndAttributes, runSpan } from './span-attributes.ts'

/** For the run that the current request starts. Without a tracer, the caller's context is only passed on. */
export function newRunTrace({ tracer }: Pick<RunDependencies, 'tracer'>): FutureSpan | undefined {
  const parent = requestTraceparent()
  if (tracer !== undefined) return tracer.plan(parent)
  return parent === undefined ? undefined : { traceparent: parent }
}

/** Records the span of a run that has ended. */
export function recordRun(runId: string, state: RunState, { tracer }: Pick<RunDependencies, 'tracer'>): void {
  const { accepted, ended } = state
  if (tracer === undefined || accepted?.trace === undefined || ended === undefined) return
  const { traceparent, parentId } = accepted.trace
  const planned: FutureSpan = parentId === undefined ? { traceparent } : { traceparent, parentId }
  tracer.record(planned, runSpan(runId, accepted, state.acceptedAt), {
    at: state.endedAt ?? state.lastAt,
    attributes: runEndAttributes(state, ended.status),
    error: errorOf(ended),
  })
}

function errorOf({ status, error }: Extract<RunEvent, { type: 'run.ended' }>['data']) {
  return status === 'failed' ? { type: error?.code ?? 'internal_error' } : undefined
}
