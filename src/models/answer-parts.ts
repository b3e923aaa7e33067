// Rules for the parts of an answer that all model clients share: the maximum length of a text
// part, how tool-call arguments are parsed, and that tool-call ids are unique.

import { defined } from '../kit/defined.ts'
import type { JsonValue, Usage } from '../journal/event.ts'
import { json } from '../journal/json-value.ts'
import { isTokenCount } from '../journal/usage.ts'
import { cutText, pieceCharsMax } from '../kit/cut-text.ts'
import type { Ids } from '../kit/ids.ts'
import { isDeeperThan, valuesIn } from '../kit/json-depth.ts'
import type { FinishReason, ModelPart, ModelRequest } from './model.ts'

/** Splits very long chunks, because each part becomes one journal event. */
export function pushText(parts: ModelPart[], type: 'text' | 'reasoning', text: string): void {
  if (text.length <= pieceCharsMax) {
    if (text !== '') parts.push({ type, text })
    return
  }
  for (const piece of cutText(text)) parts.push({ type, text: piece })
}

/** The limit for the arguments of all calls of one answer, which stay in memory until the answer is complete. */
export const argumentsCharsMax = 8 * 1024 * 1024
/** Far deeper than any tool needs, and far below the depth that overflows the stack. */
const argumentsDepthMax = 100

/**
 * The limit for the arguments of all calls of one answer. They are copied and checked several times, and 100,000 values take about a
 * tenth of a second. Text of 8 MiB could have millions of them.
 */
const argumentsValuesMax = 100_000

/** An id is repeated in every event of its call, and clients send it back, in bodies with this limit. Those of providers have some dozen characters. */
const callIdCharsMax = 200
/** No tool has such a long name, so nothing is lost. */
const callNameCharsMax = 256

/** One tool call as the provider described it, all fragments joined. */
export type RawCall = { id: string; name: string; rawInput: string }

/**
 * Called only when the answer is complete, so that no tool call of a truncated answer
 * is ever executed.
 */
export function toToolCallParts(
  calls: readonly RawCall[],
  reason: FinishReason,
  request: ModelRequest,
  ids: Ids,
): ModelPart[] {
  if (calls.length === 0) return []
  // Some servers restart their ids in every answer, but an id must be unique in the conversation.
  const taken = new Set<string>()
  for (const message of request.messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) taken.add(call.callId)
  }
  let valuesLeft = argumentsValuesMax
  return calls.map((call) => {
    const usable = call.id !== '' && call.id.length <= callIdCharsMax && !taken.has(call.id)
    const callId = usable ? call.id : `call_${ids()}`
    taken.add(callId)
    valuesLeft -= valuesIn(call.rawInput, valuesLeft)
    const input = valuesLeft < 0 ? undefined : parseCallArguments(call.rawInput, reason)
    return {
      type: 'tool-call',
      callId,
      name: call.name.slice(0, callNameCharsMax).toWellFormed(),
      rawInput: call.rawInput,
      ...defined({ input }),
    }
  })
}

/** Undefined if the arguments are not valid JSON, are nested too deeply, or have a number that is too large, such as 1e999. */
export function parseCallArguments(rawInput: string, reason: FinishReason): JsonValue | undefined {
  if (rawInput.trim() === '') {
    // Models send no arguments for tools without parameters. At the token limit, they may have been cut off instead.
    return reason === 'length' ? undefined : {}
  }
  if (isDeeperThan(rawInput, argumentsDepthMax)) return undefined
  try {
    return json.safeParse(JSON.parse(rawInput)).data
  } catch {
    return undefined
  }
}

/** Corrects the finish reason, because several servers send `stop` together with tool calls. */
export function finishReasonWith(calls: number, reason: FinishReason): FinishReason {
  return calls > 0 && (reason === 'stop' || reason === 'other') ? 'tool-calls' : reason
}

/** The token counts as a provider reported them. `input` includes what was read from the cache and written to it. */
type ReportedTokens = {
  input: unknown
  cached?: unknown
  cacheWrite?: unknown
  output: unknown
  reasoning: unknown
}

export function usageOf({ input, cached, cacheWrite, output, reasoning }: ReportedTokens): Usage | undefined {
  const usage: Usage = {}
  if (isTokenCount(input)) usage.inputTokens = input
  if (isTokenCount(output)) usage.outputTokens = output
  // Some adapters report zero if the provider reported nothing.
  if (isTokenCount(cached) && cached > 0) usage.cachedTokens = cached
  if (isTokenCount(cacheWrite) && cacheWrite > 0) usage.cacheWriteTokens = cacheWrite
  if (isTokenCount(reasoning) && reasoning > 0) usage.reasoningTokens = reasoning
  return Object.keys(usage).length === 0 ? undefined : usage
}
