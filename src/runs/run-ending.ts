// Builds the events that end a run in any state: they close unfinished text and open
// questions, give open calls a result, change the state, and finish with run.ended.
// Pure. The caller must write them in one commit, so that no reader sees half of an
// ending and every tool call in the history has a result.

import type { ErrorValue } from '../errors/app-error.ts'
import { type NewEvent, outputCharsMax, type RunStatus } from '../journal/event.ts'
import { defined } from '../kit/defined.ts'
import { type CallState, openCalls, openInteractions, type RunState, statusOf } from '../journal/run-state.ts'
import { type ClosedCall, closedCallEvent } from './closed-call.ts'

export type Ending =
  /** `output` replaces the text of the last step. */
  | { status: 'succeeded'; output?: string }
  | { status: 'failed'; error: ErrorValue; trigger?: 'upload.expired' }
  | { status: 'canceled'; by: string; reason: string | null }

export function endingEvents(state: RunState, ending: Ending, ids: () => string): NewEvent[] {
  const events: NewEvent[] = []
  const step = state.steps.at(-1)
  if (step !== undefined && !step.finished && step.text !== '') {
    events.push({
      type: 'message.done',
      data: { messageId: step.messageId, role: 'assistant', text: step.text, step: step.step, state: 'abandoned' },
    })
  }
  for (const interaction of openInteractions(state)) {
    events.push({
      type: 'input.resolved',
      data: {
        interactionId: interaction.interactionId,
        number: interaction.number,
        resolution: 'closed',
        by: 'system',
      },
    })
  }
  for (const call of openCalls(state)) events.push(closedCall(call, ids))

  const from = statusOf(state)
  const trigger = (ending.status === 'failed' ? ending.trigger : undefined) ?? triggerOf(from, ending.status)
  events.push({ type: 'run.state', data: { from, to: ending.status, trigger } })
  events.push({ type: 'run.ended', data: endedData(state, ending) })
  return events
}

function triggerOf(from: RunStatus, to: Ending['status']): string {
  if (to === 'canceled') return 'run.canceled'
  if (from !== 'running') return 'restart.reconcile_failed'
  return to === 'succeeded' ? 'turn.succeeded' : 'turn.failed'
}

function endedData(state: RunState, ending: Ending): Extract<NewEvent, { type: 'run.ended' }>['data'] {
  const last = state.steps.findLast((step) => step.finished)
  switch (ending.status) {
    case 'succeeded': {
      const output = ending.output ?? last?.text ?? ''
      // A long text is not repeated here, because its message already holds it.
      const repeated = output.length <= outputCharsMax || output !== last?.text
      return {
        status: 'succeeded',
        ...defined({ output: repeated ? output : undefined, messageId: last?.messageId }),
      }
    }
    case 'failed':
      return { status: 'failed', error: ending.error }
    case 'canceled':
      return { status: 'canceled', by: ending.by, ...defined({ reason: ending.reason ?? undefined }) }
  }
}

/** The result of an open call: `unknown` if it is unsafe and had started, because it may have happened; otherwise `cancelled`. */
function closedCall(call: CallState, ids: () => string): NewEvent {
  const unknown = (call.started && call.effect === 'unsafe') || call.askedUnknown
  return closedCallEvent(call.callId, unknown ? stoppedUnderWay : cancelledWithRun, ids)
}

const stoppedUnderWay: ClosedCall = {
  outcome: 'unknown',
  code: 'tool_outcome_unknown',
  message: 'The run ended while this call was under way; it may have happened.',
  summary: 'Stopped while it was under way; it may have happened.',
}

const cancelledWithRun: ClosedCall = {
  outcome: 'cancelled',
  code: 'tool_cancelled',
  message: 'The run ended before this call finished.',
  summary: 'Cancelled with its run.',
}
