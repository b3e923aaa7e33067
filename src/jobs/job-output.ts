// The final answer of a job: the rule that it must satisfy, the JSON value that clients get,
// and which repair the answer needed. Pure.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, RunSpec, SkillSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { wholeJson } from '../kit/embedded-json.ts'
import type { OutputRule } from '../runs/output-check.ts'

/** Undefined if the skill has no output schema, so that any text is an answer. */
export function outputRuleOf({ job, skill }: Pick<RunSpec, 'job' | 'skill'>): OutputRule | undefined {
  if (skill?.outputSchema === undefined) return undefined
  return {
    schema: skill.outputSchema,
    mayAsk: job?.mode === 'interactive',
    invalid: (errors, repaired) => outputInvalid(skill.id, errors, repaired),
  }
}

function outputInvalid(skillId: string, errors: readonly string[], repaired: boolean): AppError {
  const again = repaired ? ', also after it was asked once more' : ''
  return new AppError(
    'job_output_invalid',
    `The model’s answer is not what the skill ${skillId} promises${again}: ${errors[0]}. Run the job again, or use another model.`,
    { details: { complaints: [...errors] } },
  )
}

/** The final answer as a JSON value: parsed if the skill has an output schema, otherwise `{ text }`. */
export function outputData(skill: SkillSpec | undefined, output: string): JsonValue {
  if (skill?.outputSchema === undefined) return { text: output }
  return (wholeJson(output)?.value as JsonValue | undefined) ?? { text: output }
}

/** Which repair the answer needed: none, extraction of the JSON from its text, or a second request to the model. */
export function repairLevelOf(state: RunState): 'none' | 'deterministic_generic' | 'model_round' {
  if (state.ended?.status !== 'succeeded' || state.reused !== undefined) return 'none'
  if (state.rejectedOutputs.size > 0) return 'model_round'
  const said = state.steps.findLast((step) => step.finished)?.text ?? ''
  return said.trim() === (state.ended.output ?? '').trim() ? 'none' : 'deterministic_generic'
}
