// How a wire that knows only tool calls tells that a person is needed: the call waits for a
// decision, and a question that belongs to no call is told as a call of its own.

import type { EventData, EventOf, JsonValue } from '../journal/event.ts'
import type { Call, Calls } from './calls.ts'

/** Questions that belong to no call are told as a call of this name. */
const questionTool = 'ask_user'

export type AskedCall = {
  /** The call, or the interaction itself if it is a question without a call. */
  readonly callId: string
  /** As it is known from now on. It counts as announced: a person can only decide about what is shown. */
  readonly call: Call
  readonly wasAnnounced: boolean
}

/** The call that `input.required` is about. Its note says where to decide. */
export function askedCall(calls: Calls, event: EventOf<'input.required'>): AskedCall {
  const { callId = event.data.interactionId, prompt, input, options = [], fields = [] } = event.data
  const before = calls.get(callId)
  const call: Call = {
    name: before?.name ?? questionTool,
    note: waitingSentence(event.data),
    input: input ?? before?.input ?? { prompt, options, fields },
    ranWith: undefined,
    startedAt: event.data.callId === undefined ? event.at : before?.startedAt,
    announced: true,
  }
  return { callId, call, wasAnnounced: before?.announced === true }
}

function waitingSentence({ callId, interactionId, prompt }: EventData<'input.required'>): string {
  return callId === undefined
    ? `Waiting for an answer (${interactionId}): ${prompt}`
    : `Waiting for a decision at /v1/tool-confirmations/${interactionId} (POST …/confirm or …/reject): ${prompt}`
}

/** A reply or an output as text; undefined if there is none. */
export function valueText(value: JsonValue | undefined): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value)
}
