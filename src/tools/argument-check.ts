// JSON Schema → a function that says what is wrong with the arguments of a call, in
// a sentence that a model can act on. MCP servers send schemas of several drafts,
// with formats and keywords nobody knows: what can be understood is checked, and a
// schema that cannot be used is a reason, not a crash.

import type { JsonValue } from '../journal/event.ts'
import { type Complaint, lenientCheck } from '../kit/json-schema.ts'

/** Null when the arguments fit. */
export type ArgumentCheck = (input: JsonValue) => string | null

/** More would bury the first one; a model corrects a few at a time. */
const complaintsMax = 5

export function argumentCheck(
  schema: Record<string, unknown>,
): { ok: true; check: ArgumentCheck } | { ok: false; reason: string } {
  const prepared = lenientCheck(schema)
  if (!prepared.ok) return prepared
  return { ok: true, check: (input) => sentence(prepared.check(input)) }
}

function sentence(found: readonly Complaint[]): string | null {
  if (found.length === 0) return null
  const complaints = [...new Set(found.map(({ path, message }) => `${path.join('.') || 'arguments'}: ${message}`))]
  const shown = complaints.slice(0, complaintsMax)
  if (complaints.length > shown.length) shown.push(`and ${complaints.length - shown.length} more`)
  return shown.join('; ')
}
