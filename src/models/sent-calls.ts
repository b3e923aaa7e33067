// The tool calls of earlier steps and turns, as the providers accept them. Their ids may come from another provider or
// from a client: Anthropic refuses most characters and an id that occurs twice, OpenAI long ids. Names and arguments
// are what a model wrote, also if no tool has that name or takes such arguments: providers refuse names with other
// characters than those of real tools, and arguments that are no object.
// The same messages always give the same calls, because a provider caches only an unchanged prompt.

import { createHash } from 'node:crypto'
import type { JsonValue } from '../journal/event.ts'
import { toToolName } from '../kit/tool-name.ts'
import type { ModelMessage } from './model.ts'
import { isRecord } from '../kit/is-record.ts'

/** The limit of OpenAI's chat completions. Its Responses API allows 64. */
const charsMax = 40

/** For providers that accept any characters. */
export function shortCallId(callId: string): string {
  return callId.length <= charsMax ? callId : hashed(callId, 0)
}

/** Arguments that are no object are left out, as those that are no JSON; the result of the call says what is wrong. */
export function objectInput(input: JsonValue): JsonValue {
  return isRecord(input) ? input : {}
}

/** The same messages with ids of letters, digits, `_` and `-`, each used by one call only, and with plain names and arguments. */
export function withPlainCalls(messages: readonly ModelMessage[]): ModelMessage[] {
  const taken = new Set<string>()
  const sentIds = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'tool')
      return { ...message, callId: sentIds.get(message.callId) ?? message.callId, name: toToolName(message.name) }
    if (message.role !== 'assistant' || message.toolCalls === undefined) return message
    const toolCalls = message.toolCalls.map((call) => {
      const callId = freeId(call.callId, taken)
      taken.add(callId)
      // A result belongs to the nearest call before it.
      sentIds.set(call.callId, callId)
      return { callId, name: toToolName(call.name), input: objectInput(call.input) }
    })
    return { ...message, toolCalls }
  })
}

function freeId(callId: string, taken: ReadonlySet<string>): string {
  let sent = callId.length <= charsMax && /^[\w-]+$/.test(callId) ? callId : hashed(callId, 0)
  for (let uses = 1; taken.has(sent); uses += 1) sent = hashed(callId, uses)
  return sent
}

function hashed(callId: string, uses: number): string {
  return `call_${createHash('sha256').update(`${uses} ${callId}`).digest('hex').slice(0, 24)}`
}
