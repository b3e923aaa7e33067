// JSON Schema of an object → the fields of a form. What no field fits (alternatives, unknown types, deep nesting) is edited
// as JSON, so every schema gives a form that works. The server checks the values; a form only helps to fill it in.

/** As in the client, which the tests of this file cannot import. */
type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

export type JsonSchema = Record<string, JsonValue>

export type FormField = {
  name: string
  label: string
  help: string | undefined
  isRequired: boolean
  schema: JsonSchema
} & (
  | { kind: 'text' | 'number' | 'flag' | 'lines' | 'file' | 'json' }
  | { kind: 'choice'; options: (string | number | boolean)[] }
  | { kind: 'group'; fields: FormField[] }
  | { kind: 'list'; item: FormField }
)

/** A form with more fields than this is no help; it is edited as JSON. */
const fieldsMax = 60
const depthMax = 3

/** Null if the schema describes no object with known properties. */
export function fieldsOf(schema: JsonSchema | null | undefined): FormField[] | null {
  return schema == null ? null : fieldsIn(schema, schema, 0)
}

/** The defaults of the schema, from which a form starts. */
export function defaultsOf(schema: JsonSchema | null | undefined): Record<string, JsonValue> {
  const values: Record<string, JsonValue> = {}
  for (const field of fieldsOf(schema) ?? []) {
    const given = field.schema['default']
    if (given !== undefined) values[field.name] = given
    else if (field.kind === 'group') {
      const inside = defaultsOf(field.schema)
      if (Object.keys(inside).length > 0) values[field.name] = inside
    }
  }
  return values
}

function fieldsIn(schema: JsonSchema, root: JsonSchema, depth: number): FormField[] | null {
  const properties = objectIn(schema['properties'])
  if (properties === null) return null
  const entries = Object.entries(properties)
  if (entries.length === 0 || entries.length > fieldsMax) return null
  const needed = Array.isArray(schema['required']) ? schema['required'] : []
  return entries.map(([name, given]) => fieldOf(name, given ?? true, needed.includes(name), root, depth))
}

function fieldOf(name: string, given: JsonValue, isRequired: boolean, root: JsonSchema, depth: number): FormField {
  const schema = resolved(given, root)
  const common = {
    name,
    label: typeof schema['title'] === 'string' ? schema['title'] : name,
    help: typeof schema['description'] === 'string' ? schema['description'] : undefined,
    isRequired,
    schema,
  }
  if (schema['x-input-source'] === 'file') return { ...common, kind: 'file' }
  const options = optionsOf(schema)
  if (options !== null) return { ...common, kind: 'choice', options }
  switch (typeOf(schema)) {
    case 'string':
      return { ...common, kind: 'text' }
    case 'integer':
    case 'number':
      return { ...common, kind: 'number' }
    case 'boolean':
      return { ...common, kind: 'flag' }
    case 'array': {
      const item = fieldOf('', schema['items'] ?? true, true, root, depth + 1)
      if (item.kind === 'text') return { ...common, kind: 'lines' }
      return item.kind === 'json' || depth >= depthMax ? { ...common, kind: 'json' } : { ...common, kind: 'list', item }
    }
    case 'object': {
      const fields = depth < depthMax ? fieldsIn(schema, root, depth + 1) : null
      return fields === null ? { ...common, kind: 'json' } : { ...common, kind: 'group', fields }
    }
    default:
      return { ...common, kind: 'json' }
  }
}

/** The one type besides null; undefined if there are several, or if alternatives decide. */
function typeOf(schema: JsonSchema): string | undefined {
  if (schema['anyOf'] !== undefined || schema['oneOf'] !== undefined) return undefined
  const { type } = schema
  const types = (Array.isArray(type) ? type : [type]).filter((one) => one !== 'null')
  return types.length === 1 && typeof types[0] === 'string' ? types[0] : undefined
}

function optionsOf(schema: JsonSchema): (string | number | boolean)[] | null {
  const listed = Array.isArray(schema['enum']) ? schema['enum'].filter((value) => value !== null) : null
  if (listed === null || listed.length === 0) return null
  return listed.every((value) => typeof value !== 'object') ? listed : null
}

/** Follows a reference inside the document, once: a schema may refer to itself. */
function resolved(given: JsonValue, root: JsonSchema): JsonSchema {
  const schema = objectIn(given) ?? {}
  const ref = schema['$ref']
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return schema
  let found: JsonValue = root
  for (const part of ref.slice(2).split('/')) {
    found = objectIn(found)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')] ?? null
  }
  return { ...objectIn(found), ...schema }
}

function objectIn(value: JsonValue | undefined): JsonSchema | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
}
