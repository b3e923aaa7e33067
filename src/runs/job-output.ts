// What a job's final answer has to be: JSON that fits the output schema of its skill.
// An answer that does not fit fails the run and says why; it is never bent to fit.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, RunSpec, SkillSpec } from '../journal/event.ts'
import { schemaComplaints } from '../kit/json-schema.ts'

/** Throws `job_output_invalid`. A skill without an output schema may say anything. */
export function checkOutput(skill: SkillSpec | undefined, text: string): void {
  if (skill?.outputSchema === undefined) return
  const value = jsonOf(text)
  if (value === undefined) {
    throw new AppError(
      'job_output_invalid',
      `The skill ${skill.id} promises JSON, and the model answered with something else. Run the job again.`,
    )
  }
  const wrong = schemaComplaints(skill.outputSchema, value)
  if (wrong.length > 0) {
    throw new AppError('job_output_invalid', `The answer does not fit the output schema of ${skill.id}: ${wrong[0]}.`, {
      details: { complaints: wrong },
    })
  }
}

/**
 * A model that may ask sometimes does so in plain words instead of with its tool: an answer that should be JSON and is
 * prose. JSON that does not fit is a wrong answer, not a question.
 */
export function asksInWords({ job, skill }: Pick<RunSpec, 'job' | 'skill'>, text: string): boolean {
  if (job?.mode !== 'interactive' || skill?.outputSchema === undefined) return false
  return text.trim() !== '' && jsonOf(text) === undefined
}

/** The value that a final answer stands for: its JSON where a schema asks for it, else its text. */
export function outputData(skill: SkillSpec | undefined, text: string): JsonValue {
  if (skill?.outputSchema === undefined) return { text }
  return jsonOf(text) ?? { text }
}

/** The whole answer is JSON, or one fenced block of it; never JSON that is looked for in prose. */
export function jsonOf(text: string): JsonValue | undefined {
  const trimmed = text.trim()
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(trimmed)
  try {
    return JSON.parse(fenced?.[1] ?? trimmed) as JsonValue
  } catch {
    return undefined
  }
}
