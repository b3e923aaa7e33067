// Turns a JSON Schema into a function that checks the arguments of a call and describes
// problems in a sentence that a model can act on. MCP servers send schemas of several drafts
// with unknown formats and keywords: we check the parts that we understand. For a schema
// that cannot be used, `argumentCheck` returns the reason; it does not throw.

import { type Complaint, lenientCheck } from './json-schema.ts'

/** Returns null if the arguments are valid, else a sentence that says what is wrong. */
export type ArgumentCheck = (input: unknown) => string | null

/** Only the first few problems are reported, because a model corrects only a few at a time. */
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
