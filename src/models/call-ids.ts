// Call ids as the providers accept them. The ids of a conversation may come from another provider or
// from a client: Anthropic refuses most characters and an id that occurs twice, OpenAI long ids.
// The same messages always get the same ids, because a provider caches only an unchanged prompt.

import { createHash } from 'node:crypto'
import type { ModelMessage } from './model.ts'

/** The limit of OpenAI's chat completions. Its Responses API allows 64. */
const charsMax = 40

/** For providers that accept any characters. */
export function shortCallId(callId: string): string {
  return callId.length <= charsMax ? callId : hashed(callId, 0)
}

/** The same messages with ids of letters, digits, `_` and `-`, each used by one call only. */
export function withPlainCallIds(messages: readonly ModelMessage[]): ModelMessage[] {
  const taken = new Set<string>()
  const sentIds = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'tool') return { ...message, callId: sentIds.get(message.callId) ?? message.callId }
    if (message.role !== 'assistant' || message.toolCalls === undefined) return message
    const toolCalls = message.toolCalls.map((call) => {
      const callId = freeId(call.callId, taken)
      taken.add(callId)
      // A result belongs to the nearest call before it.
      sentIds.set(call.callId, callId)
      return { ...call, callId }
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
