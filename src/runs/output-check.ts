// Checks the final answer of a run against the rule of its kind. A wrong answer gets one
// repair round. Pure; the run loop writes the resulting events.
//
//   answer ─▶ fits ───────────────────────────────▶ the run succeeds
//          ├▶ plain words, and the run may ask ───▶ the run waits for a person
//          ├▶ wrong, for the first time ──────────▶ output.rejected; the next step is told the errors
//          └▶ wrong again ────────────────────────▶ the run fails

import type { AppError } from '../errors/app-error.ts'
import type { JsonValue, RunSpec } from '../journal/event.ts'
import { embeddedJson, wholeJson } from '../kit/embedded-json.ts'
import { schemaComplaints } from '../kit/json-schema.ts'

export type OutputRule = {
  schema: Record<string, JsonValue>
  /** What is wrong with a value that fits the schema, for rules that a schema cannot state; an empty list if nothing is. */
  check?(value: JsonValue): string[]
  /** An answer in plain words may be a question to a person. */
  mayAsk: boolean
  /** The error of a run whose answer is rejected for good. `repaired`: the repair round was used. */
  invalid(errors: readonly string[], repaired: boolean): AppError
}

export type AnswerVerdict =
  /** `output` is the JSON without surrounding text or code fence. */
  { is: 'answer'; output: string } | { is: 'question' } | { is: 'wrong'; errors: string[] }

/** Bounded because parsing blocks the event loop. */
const outputCharsMax = 4 * 1024 * 1024
const errorCharsMax = 300
const errorsMax = 5

/** `repaired`: the repair round was used. `cutOff`: the model stopped at its limit of tokens. */
export function judgeAnswer(
  rule: Omit<OutputRule, 'invalid'> | undefined,
  text: string,
  { repaired, cutOff }: { repaired: boolean; cutOff: boolean },
): AnswerVerdict {
  if (rule === undefined) return { is: 'answer', output: text }
  const verdict = judgeWhole(rule, text, repaired)
  if (!cutOff || verdict.is === 'answer') return verdict
  // The first half of a question is still one; the first half of an answer is not.
  if (verdict.is === 'question' && !/^\s*(?:```|[{[])/.test(text)) return verdict
  return wrong('it is cut off, because the limit of tokens was reached')
}

function judgeWhole(rule: Omit<OutputRule, 'invalid'>, text: string, repaired: boolean): AnswerVerdict {
  if (text.trim() === '') return wrong('it is empty')
  if (text.length > outputCharsMax) return wrong('it is longer than 4 MiB')
  const whole = wholeJson(text)
  if (whole !== undefined) {
    const complaints = complaintsOf(rule, whole.value)
    return complaints.length === 0 ? { is: 'answer', output: whole.text } : wrong(...complaints)
  }
  const candidates = embeddedJson(text).map((candidate) => ({
    ...candidate,
    complaints: complaintsOf(rule, candidate.value),
  }))
  const fitting = candidates.filter(({ complaints }) => complaints.length === 0)
  if (rule.mayAsk) {
    // Text around valid JSON may be a question that contains an example. The repair round lets the model clarify which it is.
    if (fitting.length === 0 || repaired) return { is: 'question' }
    return wrong('it is JSON with other words around it')
  }
  const [only] = fitting
  if (only !== undefined && fitting.length === 1) return { is: 'answer', output: only.text }
  if (only !== undefined) return wrong('it holds more than one JSON value that fits the schema')
  return wrong(...(candidates[0]?.complaints ?? ['it is not JSON']))
}

function complaintsOf(rule: Pick<OutputRule, 'schema' | 'check'>, value: unknown): string[] {
  const complaints = schemaComplaints(rule.schema, value)
  return complaints.length > 0 ? complaints : (rule.check?.(value as JsonValue) ?? [])
}

/** The system message that tells the model the schema of a chat's answer. Null if any text is an answer. */
export function answerRule({ outputSchema }: Pick<RunSpec, 'outputSchema'>): string | null {
  if (outputSchema === undefined) return null
  return `Your final answer is JSON and nothing else (no other words, no code fence), and it fits this JSON Schema:\n${JSON.stringify(outputSchema)}`
}

/** The message that asks the model to correct a rejected answer. */
export function repairRequest(errors: readonly string[]): string {
  return [
    'Your last message cannot be used as the final answer:',
    ...errors.map((error) => `- ${error}`),
    'Answer again with the corrected JSON and nothing else: no other words, no code fence.',
  ].join('\n')
}

function wrong(...errors: string[]): AnswerVerdict {
  return { is: 'wrong', errors: errors.slice(0, errorsMax).map((error) => error.slice(0, errorCharsMax)) }
}
