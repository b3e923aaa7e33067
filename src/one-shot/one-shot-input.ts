// The input of a one-shot run: which operation is meant, the input with its defaults filled
// in and checked against the operation's schema, and the hash over what the run reads. Pure.

import { createHash } from 'node:crypto'
import type { AgentDefinition, AgentOperation, AgentSchema } from '../agents/agent-definition.ts'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { schemaIssues } from '../kit/json-schema.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { JsonObject } from './sources/source.ts'

/** Throws `agent_operation_invalid`. */
export function operationNamed({ card, operations }: AgentDefinition, name: string | null): AgentOperation {
  const found = operations.find(({ id }) => id === name)
  if (found !== undefined) return found
  const known = operations.flatMap(({ id }) => (id === null ? [] : [id]))
  const advice = known.length === 0 ? 'It has none; leave operation out' : `Send one of ${known.join(', ')}`
  const problem =
    name === null ? `needs an operation` : `has no operation ${JSON.stringify(name.slice(0, operationCharsMax))}`
  throw new AppError('agent_operation_invalid', `The agent ${card.id} ${problem}. ${advice}.`, {
    details: { field: 'operation', operations: known },
  })
}

/** How much of an unknown operation an error repeats. */
const operationCharsMax = 64

/** The input with the defaults of its schema. Throws `invalid_input`, which names the field. */
export function checkedInput(schema: AgentSchema | null, given: JsonObject): JsonObject {
  if (schema === null) return given
  const input = withDefaults(schema, given)
  const issues = schemaIssues(schema, input).map(({ path, message }) => ({
    field: ['input', ...path].join('.'),
    message,
  }))
  const [first] = issues
  if (first !== undefined) throw invalidInput(first.field, first.message, issues)
  return input
}

export function invalidInput(
  field: string,
  message: string,
  issues: { field: string; message: string }[] = [{ field, message }],
): AppError {
  return new AppError('invalid_input', `${field} ${message}.`, { details: { field, issues } })
}

/** Only for the fields of the input itself. Null counts as not given, because clients send it so. */
function withDefaults(schema: AgentSchema, given: JsonObject): JsonObject {
  const input: JsonObject = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
  for (const [name, property] of Object.entries((schema['properties'] ?? {}) as Record<string, unknown>)) {
    const fallback = (property as { default?: JsonValue } | null)?.default
    if (fallback !== undefined && !Object.hasOwn(input, name)) input[name] = fallback
  }
  return input
}

/** Fields that name the user or the scope, which are parts of the key themselves, or whose content the source hashes. */
const coveredFields: ReadonlySet<string> = new Set(['userId', 'conversationId', 'contactId', 'messages'])

/** Equal if and only if everything is equal that the run reads. Does not depend on the clock or on the order of keys. */
export function sourceHashOf(
  agentId: string,
  { id, reads, cache }: Pick<AgentOperation, 'id' | 'reads' | 'cache'>,
  input: JsonObject,
  language: string,
  hashed: JsonValue,
): string {
  const fields = cache?.inputFields ?? null
  const counts = (name: string) => {
    if (fields !== null) return fields.includes(name)
    return reads === 'input' ? name !== 'userId' : !coveredFields.has(name)
  }
  const relevant = Object.fromEntries(Object.entries(input).filter(([name]) => counts(name)))
  const text = sortedJson({ agentId, operation: id, input: relevant, language, data: hashed })
  return createHash('sha256').update(text).digest('hex')
}
