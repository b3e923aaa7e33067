// Rules for the parts of an answer that hold for every client: how long one text
// part may be, what arguments a tool call has, and that its id names it alone.

import type { JsonValue, Usage } from '../journal/event.ts'
import { cutText, pieceCharsMax } from '../kit/cut-text.ts'
import type { Ids } from '../kit/ids.ts'
import { isDeeperThan } from '../kit/json-depth.ts'
import type { FinishReason, ModelPart, ModelRequest } from './model.ts'

/** One part becomes one journal event, so a monstrous chunk is cut. */
export function pushText(parts: ModelPart[], type: 'text' | 'reasoning', text: string): void {
  if (text.length <= pieceCharsMax) {
    if (text !== '') parts.push({ type, text })
    return
  }
  for (const piece of cutText(text)) parts.push({ type, text: piece })
}

/** The arguments of all calls of one answer; they are collected until the answer is complete. */
export const argumentsCharsMax = 8 * 1024 * 1024
/** Far deeper than any tool asks for, and far from what breaks a stack. */
const argumentsDepthMax = 100

/** One tool call as the provider described it, all fragments joined. */
export type RawCall = { id: string; name: string; rawInput: string }

/**
 * Tool calls are shown only when the answer is complete, so that nothing is ever
 * executed from an answer that was cut off.
 */
export function toToolCallParts(
  calls: readonly RawCall[],
  reason: FinishReason,
  request: ModelRequest,
  ids: Ids,
): ModelPart[] {
  if (calls.length === 0) return []
  // Some servers count from zero in every answer; an id must be new in the whole conversation.
  const taken = new Set<string>()
  for (const message of request.messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) taken.add(call.callId)
  }
  return calls.map((call) => {
    const callId = call.id !== '' && !taken.has(call.id) ? call.id : `call_${ids()}`
    taken.add(callId)
    const input = parseArguments(call.rawInput, reason)
    return {
      type: 'tool-call',
      callId,
      name: call.name,
      rawInput: call.rawInput,
      ...(input === undefined ? {} : { input }),
    }
  })
}

/** Undefined if the arguments are not valid JSON, or nested too deep to be handled. */
function parseArguments(rawInput: string, reason: FinishReason): JsonValue | undefined {
  if (rawInput.trim() === '') {
    // Models leave out the arguments of tools without any. At the token limit they may as well have been cut off.
    return reason === 'length' ? undefined : {}
  }
  if (isDeeperThan(rawInput, argumentsDepthMax)) return undefined
  try {
    return JSON.parse(rawInput) as JsonValue
  } catch {
    return undefined
  }
}

/** Several servers say `stop` when they mean tool calls. */
export function finishReasonWith(calls: number, reason: FinishReason): FinishReason {
  return calls > 0 && (reason === 'stop' || reason === 'other') ? 'tool-calls' : reason
}

export function usageOf(input: unknown, output: unknown, reasoning: unknown): Usage | undefined {
  const usage: Usage = {}
  if (isCount(input)) usage.inputTokens = input
  if (isCount(output)) usage.outputTokens = output
  // Some adapters say zero where the provider said nothing.
  if (isCount(reasoning) && reasoning > 0) usage.reasoningTokens = reasoning
  return Object.keys(usage).length === 0 ? undefined : usage
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}
