// The state machine of a run as one table. The writer checks every event against
// it, tests are generated from it, and nothing else decides what may follow what.

import type { EventType, RunEvent, RunStatus } from './event.ts'

export type Transition = { id: string; from: RunStatus; trigger: string; to: RunStatus }

export const transitions: readonly Transition[] = [
  { id: 'TR-01', from: 'queued', trigger: 'turn.started', to: 'running' },
  { id: 'TR-02', from: 'running', trigger: 'turn.needs_input', to: 'waiting_user' },
  { id: 'TR-03', from: 'waiting_user', trigger: 'interaction.reply.accepted', to: 'queued' },
  { id: 'TR-04', from: 'waiting_user', trigger: 'interaction.auto_decide.timeout', to: 'queued' },
  { id: 'TR-05', from: 'running', trigger: 'turn.succeeded', to: 'succeeded' },
  { id: 'TR-06', from: 'running', trigger: 'turn.failed', to: 'failed' },
  { id: 'TR-07', from: 'waiting_user', trigger: 'run.canceled', to: 'canceled' },
  { id: 'TR-08', from: 'queued', trigger: 'run.canceled', to: 'canceled' },
  { id: 'TR-09', from: 'running', trigger: 'run.canceled', to: 'canceled' },
  { id: 'TR-11', from: 'waiting_user', trigger: 'restart.reconcile_failed', to: 'failed' },
  { id: 'TR-12', from: 'queued', trigger: 'restart.reconcile_failed', to: 'failed' },
  { id: 'TR-13', from: 'running', trigger: 'restart.reconcile_failed', to: 'failed' },
  { id: 'TR-14', from: 'running', trigger: 'restart.requeued', to: 'queued' },
]

/** In which states each event may be written. `new` is before the first event, `ended` after run.ended. */
export const allowedIn: Readonly<Record<EventType, ReadonlyArray<RunStatus | 'new'>>> = {
  'run.accepted': ['new'],
  'run.state': ['queued', 'running', 'waiting_user'],
  'step.started': ['running'],
  'text.delta': ['running'],
  'reasoning.delta': ['running'],
  // A torn or unfinished message is closed where the run stands, also while it is requeued or cancelled.
  'message.done': ['queued', 'running', 'waiting_user'],
  'step.done': ['running'],
  'tool.called': ['running'],
  'tool.started': ['running'],
  'tool.progress': ['running'],
  // Open calls are closed by a cancel, wherever the run stands.
  'tool.done': ['queued', 'running', 'waiting_user'],
  'input.required': ['running'],
  // While others of its step still run, a person may already have decided.
  'input.resolved': ['queued', 'running', 'waiting_user'],
  'context.patch': ['queued', 'running'],
  diagnostic: ['queued', 'running', 'waiting_user'],
  'run.ended': ['succeeded', 'failed', 'canceled'],
}

export type Phase = RunStatus | 'new' | 'ended'

/** Why `event` may not be written in `phase`, or null when it may. */
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
