// `command.resume`: the answers to the interrupts of a run. LangGraph lets a client send one value, or a map from
// the ids of interrupts to values; the hooks of its SDK also send a map from the id of a tool call.

import type { LangGraphState } from '../../dialects/langgraph/langgraph.ts'
import { AppError } from '../../errors/app-error.ts'
import { agrees, isDecision } from '../../jobs/consent-words.ts'
import type { EventData, JsonValue } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import type { Services } from '../routes.ts'
import { isRecord } from '../../kit/is-record.ts'

type Asked = EventData<'input.required'>
type JsonObject = { [key: string]: JsonValue }

type Decided =
  | { asked: Asked; confirm: true; changes?: JsonObject }
  | { asked: Asked; confirm: false; reason?: string }
  | { asked: Asked; answer: JsonValue }
  | { asked: Asked; result: { output: JsonValue } | { error: string } }

const reasonCharsMax = 2000

/** All answers are checked before the first is stored. Throws `confirmation_payload_invalid` with what is missing. */
export async function resumeRun(
  { confirmations, clientTools }: Pick<Services, 'confirmations' | 'clientTools'>,
  caller: Caller,
  state: LangGraphState,
  resume: JsonValue,
): Promise<void> {
  const open = [...state.asked.values()].toSorted((left, right) => left.number - right.number)
  for (const decided of decisionsIn(open, resume)) {
    const { interactionId } = decided.asked
    if ('result' in decided) {
      await clientTools.resolve(caller, state.runId, [{ toolCallId: interactionId, ...decided.result }])
    } else if ('answer' in decided) await confirmations.confirm(caller, interactionId, { answer: decided.answer })
    else if (decided.confirm) await confirmations.confirm(caller, interactionId, decided.changes)
    else await confirmations.reject(caller, interactionId, decided.reason)
  }
}

function decisionsIn(open: readonly Asked[], resume: JsonValue): Decided[] {
  const confirmations = open.filter(({ kind }) => kind === 'confirmation')
  const others = open.filter(({ kind }) => kind !== 'confirmation')
  const byId = valuesById(open, resume)
  if (byId === undefined) {
    if (others.length === 0) return consentIn(confirmations, resume)
    const [only, second] = others
    if (only !== undefined && second === undefined && confirmations.length === 0) return [answerIn(only, resume)]
    throw wrong('Several interrupts are open; send command.resume as a map from their ids to the answers.')
  }
  const group = confirmations.find(({ interactionId }) => byId.has(interactionId))
  const consent = group === undefined ? [] : consentIn(confirmations, byId.get(group.interactionId) ?? null)
  const answers = others.flatMap((asked) => {
    const value = byId.get(asked.interactionId) ?? byId.get(asked.callId ?? '')
    return value === undefined ? [] : [answerIn(asked, value)]
  })
  return [...consent, ...answers]
}

/** Undefined if `resume` is no map from ids of what is open. */
function valuesById(open: readonly Asked[], resume: JsonValue): Map<string, JsonValue> | undefined {
  if (!isRecord(resume)) return undefined
  const ids = new Set(open.flatMap(({ interactionId, callId }) => [interactionId, callId ?? interactionId]))
  const entries = Object.entries(resume)
  return entries.length > 0 && entries.every(([id]) => ids.has(id)) ? new Map(entries) : undefined
}

/** `{decisions: […]}` in the order of the action requests; for a single call also a plain yes or no. */
function consentIn(confirmations: readonly Asked[], value: JsonValue): Decided[] {
  const decisions = isRecord(value) ? value['decisions'] : Array.isArray(value) ? value : undefined
  if (Array.isArray(decisions)) {
    if (decisions.length !== confirmations.length) {
      throw wrong(
        `${confirmations.length} calls wait for a decision, and ${decisions.length} decisions came; send one for each, in their order.`,
      )
    }
    return confirmations.map((asked, index) => decisionOf(asked, decisions[index] ?? null))
  }
  const [asked, second] = confirmations
  if (asked === undefined || second !== undefined) {
    throw wrong(
      `${confirmations.length} calls wait for a decision; send {"decisions": […]} with one for each, in their order.`,
    )
  }
  return [decisionOf(asked, value)]
}

function decisionOf(asked: Asked, value: JsonValue): Decided {
  if (!isRecord(value) || typeof value['type'] !== 'string') {
    if (!isDecision(value))
      throw wrong(
        'The answer says neither yes nor no; send {"decisions": [{"type": "approve"}]}, or "reject" as the type.',
      )
    if (agrees(value)) return { asked, confirm: true }
    return { asked, confirm: false, ...(typeof value === 'string' ? { reason: value.slice(0, reasonCharsMax) } : {}) }
  }
  const { type, message, edited_action: edited, editedAction, args } = value
  switch (type) {
    case 'approve':
    case 'accept':
      return { asked, confirm: true }
    case 'edit': {
      const action = edited ?? editedAction ?? args
      const changes = isRecord(action) ? (action['args'] ?? action['arguments']) : undefined
      if (!isRecord(changes)) throw wrong('A decision of type "edit" needs {"edited_action": {"name", "args"}}.')
      return { asked, confirm: true, changes }
    }
    case 'reject':
    case 'ignore':
      return {
        asked,
        confirm: false,
        ...(typeof message === 'string' ? { reason: message.slice(0, reasonCharsMax) } : {}),
      }
    default:
      throw wrong(`There is no decision ${JSON.stringify(type.slice(0, 40))}; use approve, edit or reject.`)
  }
}

function answerIn(asked: Asked, value: JsonValue): Decided {
  if (asked.kind !== 'client_tool') return { asked, answer: value }
  // The hooks wrap the result with the id of the call, and an error as an object.
  const inner =
    isRecord(value) && asked.callId !== undefined && asked.callId in value ? (value[asked.callId] ?? null) : value
  const error = isRecord(inner) && Object.keys(inner).length === 1 ? inner['error'] : undefined
  return { asked, result: typeof error === 'string' ? { error } : { output: inner } }
}

function wrong(sentence: string): AppError {
  return new AppError('confirmation_payload_invalid', sentence)
}
