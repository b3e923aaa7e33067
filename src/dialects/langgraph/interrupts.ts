// What a person has to decide, as interrupts of LangGraph. All tool calls that wait for consent are one
// interrupt in the shape of LangChain's human-in-the-loop middleware, whose user interfaces exist; a
// question and a call that the client executes are interrupts of their own.

import type { EventData, JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'

export type LangInterrupt = {
  readonly id: string
  readonly value: JsonValue
  readonly when: 'during'
  readonly resumable: true
}

export type Asked = EventData<'input.required'>

const allowedDecisions = ['approve', 'edit', 'reject']

/** `nameOf` gives the name of the tool of a call. */
export function langInterruptsOf(
  asked: Iterable<Asked>,
  nameOf: (callId: string | undefined) => string,
): readonly LangInterrupt[] {
  const open = [...asked].toSorted((left, right) => left.number - right.number)
  const confirmations = open.filter(({ kind }) => kind === 'confirmation')
  const others = open.filter(({ kind }) => kind !== 'confirmation')
  const [first] = confirmations
  const consent = first === undefined ? [] : [interrupt(first.interactionId, consentValue(confirmations, nameOf))]
  return [
    ...consent,
    ...others.map((one) =>
      interrupt(one.interactionId, one.kind === 'client_tool' ? callValue(one, nameOf) : questionValue(one)),
    ),
  ]
}

function interrupt(id: string, value: JsonValue): LangInterrupt {
  return { id, value, when: 'during', resumable: true }
}

function consentValue(confirmations: readonly Asked[], nameOf: (callId: string | undefined) => string): JsonValue {
  return {
    action_requests: confirmations.map(({ interactionId, callId, input, prompt, outcome }) => ({
      name: nameOf(callId),
      args: input ?? {},
      description: prompt,
      interaction_id: interactionId,
      ...defined({ tool_call_id: callId, outcome }),
    })),
    review_configs: confirmations.map(({ callId }) => ({
      action_name: nameOf(callId),
      allowed_decisions: allowedDecisions,
    })),
  }
}

/** The shape of a headless tool, which the hooks of the SDK execute by themselves. */
function callValue({ callId, input }: Asked, nameOf: (callId: string | undefined) => string): JsonValue {
  return { type: 'tool', tool_call: { ...defined({ id: callId }), name: nameOf(callId), args: input ?? {} } }
}

function questionValue({ prompt, style, options, fields }: Asked): JsonValue {
  return { type: 'question', question: prompt, ...defined({ style, options, fields }) }
}
