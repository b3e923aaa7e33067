// Reads the answer of `chat.history`: what it says about one run. The gateway marks the
// message of the user with the idempotency key of the run, and all others with the run's id.

import { type Fields, fieldsOf, listOf, textOf, wholeOf } from './gateway-frames.ts'
import { resultText } from './tool-values.ts'

export type HistoryItem =
  /** `at` is when the gateway stored the message, in epoch milliseconds. */
  | { type: 'text'; text: string; at: number | undefined }
  | { type: 'call'; callId: string; name: string; input: unknown }
  | { type: 'result'; callId: string; text: string; isError: boolean }

export type RemoteHistory = {
  /** Whether the session has any message, of this run or of earlier ones. */
  isEmpty: boolean
  /** Whether the gateway has heard of the run. */
  isKnown: boolean
  /** Whether the run is at work, or queued. */
  isActive: boolean
  /** Whether the last message of the run is a final answer. */
  isComplete: boolean
  items: HistoryItem[]
}

/** `runKey` is the idempotency key with which the run was started. */
export function readRemoteHistory(payload: unknown, runId: string, runKey: string): RemoteHistory {
  const history = fieldsOf(payload)
  const messages = listOf(history['messages']).map(fieldsOf)
  const mine = messages.filter((message) => isOf(message, runId, runKey))
  const items = mine.flatMap(itemsOf)
  const isActive = isActiveIn(history, runId)
  const last = mine.at(-1)
  return {
    isEmpty: messages.length === 0,
    isKnown: mine.length > 0 || isActive,
    isActive,
    isComplete: last?.['role'] === 'assistant' && isFinal(last) && items.at(-1)?.type === 'text',
    items,
  }
}

function isOf(message: Fields, runId: string, runKey: string): boolean {
  const own = fieldsOf(message['__openclaw'])
  if (textOf(own['runId']) === runId) return true
  const key = textOf(message['idempotencyKey']) || textOf(own['idempotencyKey'])
  return key === `${runKey}:user`
}

function isActiveIn(history: Fields, runId: string): boolean {
  if (fieldsOf(history['inFlightRun'])['runId'] === runId) return true
  const session = fieldsOf(history['sessionInfo'])
  const { activeRunIds } = session
  if (Array.isArray(activeRunIds) && activeRunIds.includes(runId)) return true
  return listOf(fieldsOf(history['pendingInputs'])['items']).some((item) => {
    const { runId: queued, state } = fieldsOf(item)
    return queued === runId && state === 'queued'
  })
}

/** A message that ends with a call is followed by the next one. */
function isFinal(message: Fields): boolean {
  const reason = textOf(message['stopReason'])
  return reason === 'stop' || reason === 'length' || reason === 'end_turn'
}

function itemsOf(message: Fields): HistoryItem[] {
  if (message['role'] === 'toolResult') {
    const callId = textOf(message['toolCallId'])
    const text = resultText(message['content'])
    return callId === '' ? [] : [{ type: 'result', callId, text, isError: message['isError'] === true }]
  }
  if (message['role'] !== 'assistant') return []
  const content = message['content']
  const at = wholeOf(fieldsOf(message['__openclaw'])['recordTimestampMs'])
  if (typeof content === 'string') return [{ type: 'text', text: content, at }]
  return listOf(content).flatMap((value): HistoryItem[] => {
    const block = fieldsOf(value)
    if (block['type'] === 'text') return [{ type: 'text', text: textOf(block['text']), at }]
    const callId = textOf(block['id'])
    if (block['type'] !== 'toolCall' || callId === '') return []
    return [{ type: 'call', callId, name: textOf(block['name']) || 'tool', input: block['arguments'] }]
  })
}
