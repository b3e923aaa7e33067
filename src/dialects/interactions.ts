// Shows interactions on wires that only have tool calls. A call that needs a confirmation
// is shown as waiting; a question that belongs to no call is shown as a call of `ask_user`.

import type { EventData, EventOf, JsonValue } from '../journal/event.ts'
import type { Call, Calls } from './calls.ts'

/** The tool name under which a question without a call is shown. */
const questionTool = 'ask_user'

export type AskedCall = {
  /** The id of the call, or of the interaction if the question has no call. */
  readonly callId: string
  /** The new state of the call. It is announced, because a person can only decide about a call that is shown. */
  readonly call: Call
  readonly wasAnnounced: boolean
}

/** The call that `input.required` is about. Its note contains the address at which a person decides. */
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

function waitingSentence({ kind, callId, interactionId, prompt }: EventData<'input.required'>): string {
  if (kind === 'client_tool')
    return `Waiting for the result of the client (POST /v1/agent/runs/{runId}/tool-results): ${prompt}`
  return callId === undefined
    ? `Waiting for an answer (${interactionId}): ${prompt}`
    : `Waiting for a decision at /v1/tool-confirmations/${interactionId} (POST …/confirm or …/reject): ${prompt}`
}

/** A reply or an output as text; undefined if there is none. */
export function valueText(value: JsonValue | undefined): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value)
}
