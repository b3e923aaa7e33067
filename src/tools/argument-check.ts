// JSON Schema → a function that says what is wrong with the arguments of a call, in
// a sentence that a model can act on. MCP servers send schemas of several drafts,
// with formats and keywords nobody knows: what can be understood is checked, and a
// schema that cannot be compiled is a reason, not a crash.

import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { JsonValue } from '../journal/event.ts'

/** Null when the arguments fit. */
export type ArgumentCheck = (input: JsonValue) => string | null

/** More would bury the first one; a model corrects a few at a time. */
const complaintsMax = 5

const options: Options = {
  strict: false,
  allErrors: true,
  // Unknown formats and keywords are ignored, and nothing is written to the console about them.
  logger: false,
  code: { regExp: Object.assign(toRegExp, { code: 'toRegExp' }) },
}

// Making one costs milliseconds, so each is made once and emptied after every use.
const validators = {
  '7': withFormats(new Ajv(options)),
  '2019': withFormats(new Ajv2019(options)),
  '2020': withFormats(new Ajv2020(options)),
}

export function argumentCheck(
  schema: Record<string, unknown>,
): { ok: true; check: ArgumentCheck } | { ok: false; reason: string } {
  const { $schema: draft, ...rest } = schema
  const ajv = validators[validatorFor(draft)]
  try {
    // `$async` would make the check return a promise, which is truthy.
    const validate = ajv.compile({ ...rest, $async: false })
    return {
      ok: true,
      check: (input) => (validate(input) ? null : sentence(validate.errors ?? [])),
    }
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) }
  } finally {
    // Two tools may use one `$id`; without this the second would be refused.
    ajv.removeSchema()
  }
}

/** The named draft's own rules; without a name those of the newest, as MCP says. */
function validatorFor(draft: unknown): keyof typeof validators {
  if (typeof draft !== 'string' || draft.includes('2020-12')) return '2020'
  return draft.includes('2019-09') ? '2019' : '7'
}

function sentence(errors: ErrorObject[]): string {
  const complaints = [...new Set(errors.map(complaint))]
  const shown = complaints.slice(0, complaintsMax)
  if (complaints.length > shown.length) shown.push(`and ${complaints.length - shown.length} more`)
  return shown.join('; ') || 'arguments: do not fit the schema of the tool'
}

function complaint(error: ErrorObject): string {
  const where = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  return `${where || 'arguments'}: ${error.message ?? 'is not valid'}${hint(error)}`
}

/** What ajv knows but does not say in its message. */
function hint(error: ErrorObject): string {
  if (error.keyword === 'additionalProperties') return ` (${String(error.params.additionalProperty)})`
  if (error.keyword === 'enum') return ` (${JSON.stringify(error.params.allowedValues).slice(1, -1)})`
  if (error.keyword === 'const') return ` (${JSON.stringify(error.params.allowedValue)})`
  return ''
}

/** Patterns are unicode ones by the standard, yet many in the wild are not valid as such (`[\w-.]`). */
function toRegExp(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return new RegExp(pattern)
  }
}

function withFormats<Validator extends Ajv | Ajv2019 | Ajv2020>(ajv: Validator): Validator {
  addFormats.default(ajv)
  return ajv
}
