// JSON Schemas that come from skills, also from uploaded ones: whether one can be used,
// and what is wrong with a value. A pattern in a schema can take for ever on the right
// text, so checking has a time limit after which it is broken off.

import { runInNewContext } from 'node:vm'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

export const schemaBytesMax = 128 * 1024
const depthMax = 64
const complaintsMax = 5
/** Far more than an honest schema needs, and short for those who wait meanwhile. */
const checkMsMax = 2000

// Making one costs milliseconds, so it is made once and emptied after every use.
const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false })

/** Why a schema cannot be used, or null. */
export function schemaProblem(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 'it is not a JSON object'
  if (depthOf(schema) > depthMax) return `it is nested more than ${depthMax} deep`
  const compiled = compile(schema as Record<string, unknown>)
  return typeof compiled === 'string' ? compiled : null
}

/** What is wrong with a value, in a few sentences; a schema that cannot be used is itself one. */
export function schemaComplaints(schema: Record<string, unknown>, value: unknown): string[] {
  const validate = compile(schema)
  if (typeof validate === 'string') return [validate]
  const fits = within(() => validate(value))
  if (typeof fits === 'string') return [fits]
  if (fits) return []
  return (validate.errors ?? []).slice(0, complaintsMax).map((error) => {
    const where = error.instancePath.slice(1).replaceAll('/', '.')
    const extra = error.keyword === 'additionalProperties' ? ` (${String(error.params.additionalProperty)})` : ''
    return `${where === '' ? 'value' : where} ${error.message ?? 'is not valid'}${extra}`
  })
}

function compile(schema: Record<string, unknown>): ValidateFunction | string {
  // Schemas of older drafts name theirs; what they share with the newest is nearly everything.
  const { $schema: _draft, ...rest } = schema
  try {
    return ajv.compile({ ...rest, $async: false })
  } catch (error) {
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`
  } finally {
    ajv.removeSchema()
  }
}

/**
 * Only the check of a value is limited: compiling runs no pattern, and takes long on a busy machine. The limit of a
 * context holds for whatever is called in it, also for functions from outside.
 */
function within(work: () => boolean): boolean | string {
  try {
    return Boolean(runInNewContext('work()', { work }, { timeout: checkMsMax }))
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return 'the schema takes too long to check'
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** Without recursion: what is too deep must not break the counting. */
function depthOf(value: object): number {
  let deepest = 0
  const rest: [value: unknown, depth: number][] = [[value, 1]]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [inner, depth] = next
    if (typeof inner !== 'object' || inner === null) continue
    deepest = Math.max(deepest, depth)
    if (deepest > depthMax) break
    for (const child of Object.values(inner)) rest.push([child, depth + 1])
  }
  return deepest
}
