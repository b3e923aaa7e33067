// What stands after the colon of a line, where it takes more than copying: the
// shapes that the real client insists on, made of what the journal has.

import type { EventData, JsonValue, Usage } from '../../journal/event.ts'

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

/** `null` is a number that nobody told us; the client reads it as NaN. */
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

/** The client wants an object; models have been seen to send a bare string or a list. */
export function argsOf(input: JsonValue | undefined): object {
  if (input === undefined) return {}
  return input !== null && typeof input === 'object' && !Array.isArray(input) ? input : { input }
}

/** Both come from the journal, so equal values have equal text unless someone reordered keys; then showing them is right too. */
export function sameJson(left: object, right: object): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right)
}

/** A failed call is a result too: `3:` would throw away the whole message on the client. */
export function resultOf(done: EventData<'tool.done'>): unknown {
  const { output, outcome, summary, error, truncated, fullLength } = done
  const shown = output !== undefined && truncated ? { truncated: true, fullLength, preview: output } : output
  if (outcome === 'succeeded') return shown ?? null
  return {
    outcome,
    error: error ?? { code: 'tool_failed', message: summary },
    ...(shown === undefined ? {} : { output: shown }),
  }
}
