// The events that end a run, wherever it stands: unfinished text is closed, open
// calls get a result, open questions are closed, the state changes, and run.ended
// is last. Pure; the caller writes them in one commit, so no reader ever sees half
// of an ending, and the history stays one that a provider accepts.

import type { ErrorValue } from '../errors/app-error.ts'
import { type NewEvent, outputCharsMax, type RunStatus } from '../journal/event.ts'
import { type CallState, openCalls, openInteractions, type RunState, statusOf } from '../journal/run-state.ts'

export type Ending =
  /** `output` instead of the text of the last step. */
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
      // Its message is stored already; a long text is not stored again.
      const repeated = output.length <= outputCharsMax || output !== last?.text
      return {
        status: 'succeeded',
        ...(repeated ? { output } : {}),
        ...(last === undefined ? {} : { messageId: last.messageId }),
      }
    }
    case 'failed':
      return { status: 'failed', error: ending.error }
    case 'canceled':
      return { status: 'canceled', by: ending.by, ...(ending.reason === null ? {} : { reason: ending.reason }) }
  }
}

/** A call that was under way and cannot be taken back is not called cancelled: nobody knows. */
function closedCall(call: CallState, ids: () => string): NewEvent {
  const unknown = (call.started && call.effect === 'unsafe') || call.askedUnknown
  return {
    type: 'tool.done',
    data: {
      callId: call.callId,
      messageId: ids(),
      outcome: unknown ? 'unknown' : 'cancelled',
      summary: unknown ? 'Stopped while it was under way; it may have happened.' : 'Cancelled with its run.',
      error: unknown
        ? {
            code: 'tool_outcome_unknown',
            message: 'The run ended while this call was under way; it may have happened.',
          }
        : { code: 'tool_cancelled', message: 'The run ended before this call finished.' },
      durationMs: 0,
      fullLength: 0,
      truncated: false,
    },
  }
}
