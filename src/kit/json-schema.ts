// Validates values against JSON Schemas from outside: skills (also uploaded ones), MCP
// servers, agent definitions. All use of such schemas must go through this file. The work is
// bounded by step counts (src/kit/schema), not by time.

import { checkValue } from './schema/check-value.ts'
import { prepareSchema } from './schema/prepare-schema.ts'

export { schemaBytesMax } from './schema/prepare-schema.ts'

export type Complaint = { path: string[]; message: string }

/** Returns what is wrong with a value; an empty list if it fits. */
export type SchemaCheck = (value: unknown) => Complaint[]

const complaintsMax = 5

/**
 * For tools of MCP servers. A pattern that our regular expression engine does not support is ignored, because the server
 * checks its arguments itself.
 */
export function lenientCheck(schema: unknown): { ok: true; check: SchemaCheck } | { ok: false; reason: string } {
  const prepared = prepareSchema(schema, { unusablePatterns: 'ignore' })
  if (!prepared.ok) return prepared
  return { ok: true, check: (value) => checkValue(prepared.schema, value).errors }
}

/** The reason why a schema cannot be used, or null. A pattern that cannot be checked in linear time is such a reason. */
export function schemaProblem(schema: unknown): string | null {
  const prepared = prepareSchema(schema, { unusablePatterns: 'refuse' })
  return prepared.ok ? null : prepared.reason
}

/** What is wrong with a value, each with the path of the field, at most `complaintsMax`. A property that is missing is named in the path. */
export function schemaIssues(schema: Record<string, unknown>, value: unknown): Complaint[] {
  const prepared = prepareSchema(schema, { unusablePatterns: 'refuse' })
  if (!prepared.ok) return [{ path: [], message: prepared.reason }]
  const { errors } = checkValue(prepared.schema, value)
  return errors.slice(0, complaintsMax).map(({ path, message }) => {
    const missing = /^must have required property '(.+)'$/.exec(message)?.[1]
    return missing === undefined ? { path, message } : { path: [...path, missing], message: 'is missing' }
  })
}

/** Describes what is wrong with a value, in at most `complaintsMax` phrases. If the schema cannot be used, the reason is the only one. */
export function schemaComplaints(schema: Record<string, unknown>, value: unknown): string[] {
  const prepared = prepareSchema(schema, { unusablePatterns: 'refuse' })
  if (!prepared.ok) return [prepared.reason]
  const { errors } = checkValue(prepared.schema, value)
  return errors.slice(0, complaintsMax).map(({ path, message }) => {
    const where = path.join('.')
    return `${where === '' ? 'value' : where} ${message}`
  })
}
