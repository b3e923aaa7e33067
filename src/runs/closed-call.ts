// The results of tool calls that end without their tool: refused by a person, expired,
// cancelled with the run, or of unknown outcome. Pure. The sentences are the same wherever
// a call ends so, because the model and the wires show them.

import type { NewEvent } from '../journal/event.ts'
import { beginningOf } from '../kit/cut-text.ts'

export type ClosedCall = {
  outcome: 'failed' | 'denied' | 'cancelled' | 'unknown'
  code: string
  message: string
  /** One line for people; absent means the message. */
  summary?: string
}

const summaryCharsMax = 500

/** The result of a call that a person did not allow. */
export function refusedCall(decision: string | undefined, reason: string | undefined): ClosedCall {
  if (decision === 'expired') return { outcome: 'denied', code: 'tool_expired', message: 'Nobody decided in time.' }
  if (decision === 'closed')
    return { outcome: 'cancelled', code: 'tool_cancelled', message: 'The question was closed.' }
  return { outcome: 'denied', code: 'tool_denied', message: reason ?? 'The user said no.' }
}

export const unreadableInput: ClosedCall = {
  outcome: 'failed',
  code: 'tool_input_invalid',
  message: 'The arguments are not valid JSON, longer than 256 KiB, or have too many values.',
}

/** The result of a call whose arguments do not fit the schema of its tool. */
export function wrongInput(problem: string): ClosedCall {
  return { outcome: 'failed', code: 'tool_input_invalid', message: `The arguments do not fit: ${problem}.` }
}

export function closedCallEvent(
  callId: string,
  { outcome, code, message, summary = message }: ClosedCall,
  ids: () => string,
): NewEvent {
  return {
    type: 'tool.done',
    data: {
      callId,
      messageId: ids(),
      outcome,
      summary: beginningOf(summary, summaryCharsMax),
      error: { code, message },
      durationMs: 0,
      fullLength: 0,
      truncated: false,
    },
  }
}
