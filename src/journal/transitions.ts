// The state machine of a run as one table: the only place that decides which event may
// follow which. The writer checks every event against it, and tests are generated from it.
// The edges are data in invariants.json, beside the other rules that runs keep.

import type { EventType, RunEvent, RunStatus } from './event.ts'
import invariants from './invariants.json' with { type: 'json' }

export type Transition = { id: string; from: RunStatus; trigger: string; to: RunStatus }

export const transitions: readonly Transition[] = invariants.transitions as Transition[]

/** In which states each event may be written. `new` is before the first event, `ended` after run.ended. */
export const allowedIn: Readonly<Record<EventType, ReadonlyArray<RunStatus | 'new'>>> = {
  'run.accepted': ['new'],
  'run.prepared': ['queued'],
  'run.state': ['queued', 'running', 'waiting_user'],
  'step.started': ['running'],
  'text.delta': ['running'],
  'reasoning.delta': ['running'],
  'source.found': ['running'],
  // An unfinished message is closed in the current state, also while the run is requeued or cancelled.
  'message.done': ['queued', 'running', 'waiting_user'],
  'step.done': ['running'],
  'answer.discarded': ['running'],
  'tool.called': ['running'],
  'tool.started': ['running'],
  'tool.progress': ['running'],
  // A cancel closes open calls in any state.
  'tool.done': ['queued', 'running', 'waiting_user'],
  'input.required': ['running'],
  // A person may decide while other calls of the same step still run.
  'input.resolved': ['queued', 'running', 'waiting_user'],
  'output.rejected': ['running'],
  'engine.handle': ['running'],
  'context.cut': ['running'],
  'context.summarised': ['running'],
  'context.patch': ['queued', 'running'],
  diagnostic: ['queued', 'running', 'waiting_user'],
  'run.ended': ['succeeded', 'failed', 'canceled'],
}

export type Phase = RunStatus | 'new' | 'ended'

/** The reason why `event` may not be written in `phase`, or null if it may. */
export function refusal(phase: Phase, event: Pick<RunEvent, 'type' | 'data'>): string | null {
  if (phase === 'ended') return `nothing follows run.ended, not even ${event.type}`
  if (!allowedIn[event.type].includes(phase)) return `${event.type} may not be written while the run is ${phase}`
  if (event.type === 'run.state') {
    const { from, to, trigger } = event.data as { from: RunStatus; to: RunStatus; trigger: string }
    if (from !== phase) return `the run is ${phase}, not ${from}`
    if (!transitions.some((edge) => edge.from === from && edge.to === to && edge.trigger === trigger)) {
      return `there is no edge ${from} -> ${to} for ${trigger}`
    }
  }
  if (event.type === 'run.ended' && (event.data as { status: string }).status !== phase) {
    return `the run is ${phase}, so it cannot end as ${(event.data as { status: string }).status}`
  }
  return null
}

export function phaseAfter(phase: Phase, event: Pick<RunEvent, 'type' | 'data'>): Phase {
  if (event.type === 'run.accepted') return 'queued'
  if (event.type === 'run.state') return (event.data as { to: RunStatus }).to
  if (event.type === 'run.ended') return 'ended'
  return phase
}
