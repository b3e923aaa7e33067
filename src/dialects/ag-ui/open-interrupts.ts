// What a run waits for, as AG-UI tells it: confirmations and questions are interrupts; a call of a
// tool that the client runs is only a call without a result.

import type { EventData } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'

/** The interactions of a run that have no answer yet, by id. */
export type Awaited = ReadonlyMap<string, EventData<'input.required'>>

const approvalSchema = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: { type: 'string', description: 'Why not.' },
    editedArgs: { type: 'object', description: 'Arguments to run the call with instead.' },
  },
  required: ['approved'],
}

const answerSchema = { type: 'object', properties: { answer: {} }, required: ['answer'] }

export function interruptsOf(awaited: Awaited, nameOfCall: (callId: string) => string | undefined): object[] {
  return [...awaited.values()]
    .filter(({ kind }) => kind !== 'client_tool')
    .map((asked) => {
      const { interactionId: id, callId, prompt: message, deadlineAt, outcome, style, options, fields } = asked
      const expiresAt = deadlineAt === undefined ? undefined : isoTime(deadlineAt)
      if (callId === undefined) {
        const metadata = defined({ style, options, fields })
        return {
          id,
          reason: 'input_required',
          message,
          responseSchema: answerSchema,
          ...defined({ expiresAt, metadata: Object.keys(metadata).length === 0 ? undefined : metadata }),
        }
      }
      return {
        id,
        reason: 'tool_call',
        message,
        toolCallId: callId,
        responseSchema: approvalSchema,
        ...defined({ expiresAt }),
        metadata: { toolName: nameOfCall(callId) ?? 'unknown', ...defined({ outcome }) },
      }
    })
}

/** The calls whose results the client has to bring. */
export function clientCallsOf(awaited: Awaited): string[] {
  return [...awaited.values()].flatMap(({ kind, callId }) =>
    kind === 'client_tool' && callId !== undefined ? [callId] : [],
  )
}
