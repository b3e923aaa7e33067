// The ids that the remote agent gave to its messages, by what we know of a message. An agent
// that keeps its own history recognises by them which messages it has.

import { createHash } from 'node:crypto'
import type { ModelMessage } from '../../models/model.ts'

export type MessageIds = Record<string, string>

const idCharsMax = 200
/** Of all ids with their keys; the oldest are forgotten first. */
const charsMax = 24 * 1024

export const keyOfCall = (callId: string) => `call ${callId}`
export const keyOfResult = (callId: string) => `result ${callId}`
export const keyOfText = (text: string) => `text ${createHash('sha256').update(text).digest('hex').slice(0, 24)}`

/** A message with calls is found by its first call. Undefined for messages that are not the agent's. */
export function keyOfMessage(message: ModelMessage): string | undefined {
  if (message.role === 'tool') return keyOfResult(message.callId)
  if (message.role !== 'assistant') return undefined
  const [first] = message.toolCalls ?? []
  return first === undefined ? keyOfText(message.content) : keyOfCall(first.callId)
}

/** Both, the newer ones last, within the bounds of a handle. */
export function mergedIds(older: MessageIds, newer: MessageIds): MessageIds {
  const entries = Object.entries({ ...older, ...newer }).filter(
    ([key, id]) => id !== '' && id.length <= idCharsMax && key.length <= 2 * idCharsMax,
  )
  let chars = 0
  const kept = entries.toReversed().filter(([key, id]) => (chars += key.length + id.length + 6) <= charsMax)
  return Object.fromEntries(kept.toReversed())
}
