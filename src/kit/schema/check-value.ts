// Checks a value against a prepared schema by walking both. The author of the schema
// and the author of the value together choose how long that takes (references that
// double at every level, patterns on long texts, thousands of alternatives), so every
// loop here spends steps from one budget. A check that runs out of steps is refused;
// it never takes longer.

import type { PreparedSchema } from './prepare-schema.ts'
import { Check, type SchemaError } from './schema-check.ts'
import { OutOfSteps, Steps } from './steps.ts'

/** A fraction of a second for the worst schema; honest ones need some thousand. */
export const stepsMax = 250_000
/** Of these, for finding the words for what is wrong. */
const errorStepsMax = 20_000
const valueDepthMax = 200
const valueNodesMax = 100_000
const valueCharsMax = 8 * 1024 * 1024
/** Counting a value is cheaper than checking it. */
const nodesPerStep = 4

export type CheckResult = { fits: boolean; errors: SchemaError[]; steps: number }

/**
 * First only whether it fits, which stops at the first thing that does not; most values fit. Then, if need be, what is wrong,
 * which has a small budget of its own: the sentences are for people, and the answer is known by then.
 */
export function checkValue(schema: PreparedSchema, value: unknown): CheckResult {
  const steps = new Steps(stepsMax - errorStepsMax)
  try {
    const size = sizeProblem(value, steps)
    if (size !== null) return { fits: false, errors: [{ path: [], message: size }], steps: steps.spent }
    if (new Check(schema, steps, 'quiet').run(value)) return { fits: true, errors: [], steps: steps.spent }
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error
    const message = 'takes too many steps to check against the schema; simplify the schema or send less'
    return { fits: false, errors: [{ path: [], message }], steps: steps.spent }
  }
  const more = new Steps(errorStepsMax)
  const errors = errorsOf(schema, value, more)
  return { fits: false, errors, steps: steps.spent + more.spent }
}

function errorsOf(schema: PreparedSchema, value: unknown, steps: Steps): SchemaError[] {
  const check = new Check(schema, steps, 'telling')
  try {
    check.run(value)
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error
  }
  // Out of steps in the middle of an attempt: what was found outside of it still holds.
  return check.found.length > 0 ? check.found : [{ path: [], message: 'does not fit the schema' }]
}

/** Without recursion, and before anything that recurses looks at the value. */
function sizeProblem(value: unknown, steps: Steps): string | null {
  let nodes = 0
  let chars = 0
  const rest: [value: unknown, depth: number][] = [[value, 1]]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [inner, depth] = next
    nodes += 1
    if (typeof inner === 'string') chars += inner.length
    else if (typeof inner === 'object' && inner !== null) {
      if (depth > valueDepthMax) return `is nested more than ${valueDepthMax} deep`
      for (const [key, child] of Object.entries(inner)) {
        chars += key.length
        rest.push([child, depth + 1])
      }
    }
    if (nodes + rest.length > valueNodesMax || chars > valueCharsMax) return 'is too large to be checked'
  }
  steps.spend(nodes / nodesPerStep)
  return null
}
