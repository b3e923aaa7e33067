// What the final answer of a run must be, and the one repair round that a wrong answer gets.
// Pure; the loop writes what is decided here. Today jobs promise JSON by their skill's output
// schema; whatever else promises a structured answer only needs a rule.
//
//   answer ─▶ fits ───────────────────────────────▶ the run succeeds
//          ├▶ plain words, and the run may ask ───▶ the run waits for a person
//          ├▶ wrong, for the first time ──────────▶ output.rejected; the next step is told the errors
//          └▶ wrong again ────────────────────────▶ the run fails

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, RunSpec, SkillSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { embeddedJson, wholeJson } from '../kit/embedded-json.ts'
import { schemaComplaints } from '../kit/json-schema.ts'

export type OutputRule = {
  /** Who promises the answer, for error messages. */
  promisedBy: string
  schema: Record<string, JsonValue>
  /** An answer in plain words may be a question to a person. */
  mayAsk: boolean
}

export type Verdict =
  /** `output` is the JSON alone, without the words or the fence around it. */
  { is: 'answer'; output: string } | { is: 'question' } | { is: 'wrong'; errors: string[] }

/** Parsing blocks the process; no schema of ours needs more. */
const outputCharsMax = 4 * 1024 * 1024
const errorCharsMax = 300
const errorsMax = 5

/** Undefined: any text is an answer. */
export function outputRuleOf({ job, skill }: Pick<RunSpec, 'job' | 'skill'>): OutputRule | undefined {
  if (skill?.outputSchema === undefined) return undefined
  return { promisedBy: `the skill ${skill.id}`, schema: skill.outputSchema, mayAsk: job?.mode === 'interactive' }
}

/** `repaired`: the run had its repair round. */
export function judgeAnswer(rule: OutputRule | undefined, text: string, repaired: boolean): Verdict {
  if (rule === undefined) return { is: 'answer', output: text }
  if (text.trim() === '') return wrong('it is empty')
  if (text.length > outputCharsMax) return wrong('it is longer than 4 MiB')
  const whole = wholeJson(text)
  if (whole !== undefined) {
    const complaints = schemaComplaints(rule.schema, whole.value)
    return complaints.length === 0 ? { is: 'answer', output: whole.text } : wrong(...complaints)
  }
  const candidates = embeddedJson(text).map((candidate) => ({
    ...candidate,
    complaints: schemaComplaints(rule.schema, candidate.value),
  }))
  const fitting = candidates.filter(({ complaints }) => complaints.length === 0)
  if (rule.mayAsk) {
    // Words around JSON that fits may be a question with an example in it. Only the model knows, so it is asked first.
    if (fitting.length === 0 || repaired) return { is: 'question' }
    return wrong('it is JSON with other words around it')
  }
  const [only] = fitting
  if (only !== undefined && fitting.length === 1) return { is: 'answer', output: only.text }
  if (only !== undefined) return wrong('it holds more than one JSON value that fits the schema')
  return wrong(...(candidates[0]?.complaints ?? ['it is not JSON']))
}

/** What the model is told after an answer that was rejected. */
export function repairRequest(errors: readonly string[]): string {
  return [
    'Your last message cannot be used as the final answer:',
    ...errors.map((error) => `- ${error}`),
    'Answer again with the corrected JSON and nothing else: no other words, no code fence.',
  ].join('\n')
}

export function outputInvalid(rule: OutputRule, errors: readonly string[], repaired: boolean): AppError {
  const again = repaired ? ', also after it was asked once more' : ''
  return new AppError(
    'job_output_invalid',
    `The model’s answer is not what ${rule.promisedBy} promises${again}: ${errors[0]}. Run the job again, or use another model.`,
    { details: { complaints: [...errors] } },
  )
}

/** The value that a final answer stands for: its JSON if a schema asks for it, else its text. */
export function outputData(skill: SkillSpec | undefined, output: string): JsonValue {
  if (skill?.outputSchema === undefined) return { text: output }
  return (wholeJson(output)?.value as JsonValue | undefined) ?? { text: output }
}

/** How the answer of a succeeded run became its output. */
export function repairLevelOf(state: RunState): 'none' | 'deterministic_generic' | 'model_round' {
  if (state.ended?.status !== 'succeeded' || state.reused !== undefined) return 'none'
  if (state.rejectedOutputs.size > 0) return 'model_round'
  const said = state.steps.findLast((step) => step.finished)?.text ?? ''
  return said.trim() === (state.ended.output ?? '').trim() ? 'none' : 'deterministic_generic'
}

function wrong(...errors: string[]): Verdict {
  return { is: 'wrong', errors: errors.slice(0, errorsMax).map((error) => error.slice(0, errorCharsMax)) }
}
