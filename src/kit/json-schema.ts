// JSON Schemas that come from outside: skills (also uploaded ones), MCP servers, agent
// definitions. The only place that reads and applies one: whether it can be used, and
// what is wrong with a value. Both are bounded by counts (src/kit/schema), never by time.

import { checkValue } from './schema/check-value.ts'
import { prepareSchema } from './schema/prepare-schema.ts'

export { schemaBytesMax } from './schema/prepare-schema.ts'

export type Complaint = { path: string[]; message: string }

/** What is wrong with a value; nothing if it fits. */
export type SchemaCheck = (value: unknown) => Complaint[]

const complaintsMax = 5

/**
 * For tools of MCP servers: a pattern that our engine does not have is left to the server, which checks its arguments
 * itself.
 */
export function lenientCheck(schema: unknown): { ok: true; check: SchemaCheck } | { ok: false; reason: string } {
  const prepared = prepareSchema(schema, { unusablePatterns: 'ignore' })
  if (!prepared.ok) return prepared
  return { ok: true, check: (value) => checkValue(prepared.schema, value).errors }
}

/** Why a schema cannot be used, or null. A pattern that cannot be checked in bounded time is a reason. */
export function schemaProblem(schema: unknown): string | null {
  const prepared = prepareSchema(schema, { unusablePatterns: 'refuse' })
  return prepared.ok ? null : prepared.reason
}

/** What is wrong with a value, in a few sentences; a schema that cannot be used is itself one. */
export function schemaComplaints(schema: Record<string, unknown>, value: unknown): string[] {
  const prepared = prepareSchema(schema, { unusablePatterns: 'refuse' })
  if (!prepared.ok) return [prepared.reason]
  const { errors } = checkValue(prepared.schema, value)
  return errors.slice(0, complaintsMax).map(({ path, message }) => {
    const where = path.join('.')
    return `${where === '' ? 'value' : where} ${message}`
  })
}
