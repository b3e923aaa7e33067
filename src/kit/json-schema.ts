// JSON Schemas that come from skills, also from uploaded ones: whether one can be used,
// and what is wrong with a value. A pattern in a schema can take for ever on the right
// text, so checking has a time limit after which it is broken off.

import { runInNewContext } from 'node:vm'
import { Ajv2020 } from 'ajv/dist/2020.js'

export const schemaBytesMax = 128 * 1024
const depthMax = 64
const complaintsMax = 5
/** Far more than an honest schema needs, and short for those who wait meanwhile. */
const checkMsMax = 500

/** Why a schema cannot be used, or null. */
export function schemaProblem(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 'it is not a JSON object'
  if (depthOf(schema) > depthMax) return `it is nested more than ${depthMax} deep`
  const result = within(() => {
    compile(schema as Record<string, unknown>)
    return []
  })
  return result[0] ?? null
}

/** What is wrong with a value, in a few sentences; a schema that cannot be used is itself one. */
export function schemaComplaints(schema: Record<string, unknown>, value: unknown): string[] {
  return within(() => {
    const validate = compile(schema)
    if (validate(value)) return []
    return (validate.errors ?? []).slice(0, complaintsMax).map((error) => {
      const where = error.instancePath.slice(1).replaceAll('/', '.')
      const extra = error.keyword === 'additionalProperties' ? ` (${String(error.params.additionalProperty)})` : ''
      return `${where === '' ? 'value' : where} ${error.message ?? 'is not valid'}${extra}`
    })
  })
}

function compile(schema: Record<string, unknown>) {
  // Schemas of older drafts name theirs; what they share with the newest is nearly everything.
  const { $schema: _draft, ...rest } = schema
  return new Ajv2020({ strict: false, allErrors: true, logger: false }).compile({ ...rest, $async: false })
}

/** The limit of a context holds for whatever is called in it, also for functions from outside. */
function within(work: () => string[]): string[] {
  try {
    return runInNewContext('work()', { work }, { timeout: checkMsMax }) as string[]
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return ['the schema takes too long to check']
    return [`the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`]
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
