// Converts journal values into the JSON values that the real client requires after the
// colon of a line.

import type { EventData, JsonValue, Usage } from '../../journal/event.ts'
import { shownOutput } from '../calls.ts'
import { isRecord } from '../../kit/is-record.ts'

/** The real client throws on any other code. */
export const codes = {
  text: '0',
  data: '2',
  error: '3',
  message_annotations: '8',
  tool_call: '9',
  tool_result: 'a',
  finish_message: 'd',
  finish_step: 'e',
  start_step: 'f',
  reasoning: 'g',
  source: 'h',
} as const

export type PartName = keyof typeof codes

const finishReasons: ReadonlySet<string> = new Set([
  'stop',
  'length',
  'content-filter',
  'tool-calls',
  'error',
  'other',
  'unknown',
])

export function finishReasonOf(reason: string): string {
  return finishReasons.has(reason) ? reason : 'other'
}

/** A count is null if the provider did not report it; the client reads null as NaN. */
export type Tokens = { readonly promptTokens: number | null; readonly completionTokens: number | null }

export function tokensOf(usage: Usage | undefined): Tokens | null {
  if (usage?.inputTokens === undefined && usage?.outputTokens === undefined) return null
  return { promptTokens: usage.inputTokens ?? null, completionTokens: usage.outputTokens ?? null }
}

export function sumOf(left: Tokens | null, right: Tokens | null): Tokens | null {
  if (left === null || right === null) return left ?? right
  const sum = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : a + b)
  return {
    promptTokens: sum(left.promptTokens, right.promptTokens),
    completionTokens: sum(left.completionTokens, right.completionTokens),
  }
}

/** The client requires an object; some models send a bare string or a list. */
export function argsOf(input: JsonValue | undefined): object {
  if (input === undefined) return {}
  return isRecord(input) ? input : { input }
}

/** Compares as text. Objects that differ only in key order count as different, which does no harm: the args are sent again. */
export function sameJson(left: object, right: object): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right)
}

/** A failed call is sent as a result, because `3:` would make the client discard the whole message. */
export function toolResultOf(done: EventData<'tool.done'>): unknown {
  const { outcome, summary, error } = done
  const shown = shownOutput(done)
  if (outcome === 'succeeded') return shown ?? null
  return {
    outcome,
    error: error ?? { code: 'tool_failed', message: summary },
    ...(shown === undefined ? {} : { output: shown }),
  }
}
