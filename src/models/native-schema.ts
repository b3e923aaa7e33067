// Decides whether a provider's own mode for structured output can be used with a schema.
// Providers support different parts of JSON Schema and refuse requests with the rest, so
// only the part that all of them support is sent. For other schemas the instruction in the
// prompt and the check of the answer must do.

import { isRecord } from '../kit/is-record.ts'
import { isPlainArgumentName } from './argument-names.ts'

const keywords = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'description',
  'title',
])
const types = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean'])
/** Providers limit the depth and the number of properties. */
const depthMax = 5
const propertiesMax = 100

/**
 * Undefined if the schema cannot be sent. `strict`: every object lists all its properties as required and allows no others,
 * which OpenAI demands of schemas that it guarantees to keep.
 */
export function nativeSchema(schema: Record<string, unknown>): { strict: boolean } | undefined {
  const found = { strict: true, properties: 0 }
  if (schema['type'] !== 'object' || !isSupported(schema, 1, found)) return undefined
  return { strict: found.strict }
}

function isSupported(schema: unknown, depth: number, found: { strict: boolean; properties: number }): boolean {
  if (!isRecord(schema) || depth > depthMax) return false
  if (Object.keys(schema).some((key) => !keywords.has(key))) return false
  const { type, properties = {}, required = [], additionalProperties, items, enum: values } = schema
  if (typeof type !== 'string' || !types.has(type)) return false
  if (values !== undefined && !(Array.isArray(values) && values.every((value) => typeof value === 'string')))
    return false
  if (type === 'array') return isSupported(items, depth + 1, found)
  if (type !== 'object') return schema['properties'] === undefined && items === undefined
  if (!isRecord(properties) || !Array.isArray(required)) return false
  if (additionalProperties !== undefined && additionalProperties !== false) return false
  const names = Object.keys(properties)
  found.properties += names.length
  if (names.length === 0 || found.properties > propertiesMax || !names.every(isPlainArgumentName)) return false
  if (required.some((name) => !names.includes(name as string))) return false
  if (additionalProperties !== false || names.some((name) => !required.includes(name))) found.strict = false
  return names.every((name) => isSupported(properties[name], depth + 1, found))
}
