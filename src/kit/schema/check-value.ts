// Checks a value against a prepared schema by walking both. A hostile schema or value could
// make this take very long (references that double at every level, patterns on long texts,
// thousands of alternatives), so every loop spends steps from one budget. If the budget is
// used up, the value is refused.

import type { PreparedSchema } from './prepare-schema.ts'
import { Check, type SchemaError } from './schema-check.ts'
import { OutOfSteps, Steps } from './steps.ts'

/** Takes a fraction of a second with the worst schema; ordinary schemas need a few thousand steps. */
export const stepsMax = 250_000
/** The part of `stepsMax` that is reserved for describing the errors. */
const errorStepsMax = 20_000
const valueDepthMax = 200
const valueNodesMax = 100_000
const valueCharsMax = 8 * 1024 * 1024
/** Counting the nodes of a value is cheaper than checking them. */
const nodesPerStep = 4

export type CheckResult = { fits: boolean; errors: SchemaError[]; steps: number }

/**
 * The first pass only decides whether the value fits, and stops at the first error; most values fit. If it does not fit, a second
 * pass collects the error messages. It has a small budget of its own, because the decision is already made.
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
  const check = new Check(schema, steps, 'report')
  try {
    check.run(value)
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error
  }
  // If the steps ran out inside an attempt, the errors found outside of it are still valid.
  return check.found.length > 0 ? check.found : [{ path: [], message: 'does not fit the schema' }]
}

/** Must run before any recursive code sees the value, and does not recurse itself. */
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
      if (Array.isArray(inner)) for (const child of inner) rest.push([child, depth + 1])
      else
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
