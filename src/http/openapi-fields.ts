// Reads JSON Schemas of an OpenAPI document for people: a flat list of fields
// with a type in words, and an example value. References are followed; one that
// leads back into itself is named and not followed again.

export type Schema = {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  oneOf?: Schema[]
  anyOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  examples?: unknown[]
  format?: string
  description?: string
  nullable?: boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}

export type Components = { schemas?: Record<string, Schema> }

export type Field = { path: string; type: string; required: boolean; description: string }

/** Deeper fields are left to the schema itself; a page that lists them is no longer read. */
const depthMax = 4

export function resolveSchema(schema: Schema, components: Components): Schema {
  let resolved = schema
  // A chain of references is short; a ring of them must end too.
  for (let hop = 0; resolved.$ref !== undefined && hop < 10; hop++) {
    const target = components.schemas?.[nameOf(resolved.$ref)]
    if (target === undefined) return {}
    resolved = target
  }
  if (resolved.allOf === undefined) return resolved
  const parts = resolved.allOf.map((part) => resolveSchema(part, components))
  return {
    ...resolved,
    type: 'object',
    properties: Object.assign({}, ...parts.map((part) => part.properties), resolved.properties) as Record<
      string,
      Schema
    >,
    required: [...parts, resolved].flatMap((part) => part.required ?? []),
  }
}

function nameOf(reference: string): string {
  return decodeURIComponent(reference.split('/').at(-1) ?? '')
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')
}

export function fieldsOf(schema: Schema, components: Components): Field[] {
  const fields: Field[] = []
  collect(schema, '', new Set(), 0)
  return fields

  function collect(at: Schema, prefix: string, followed: ReadonlySet<string>, depth: number): void {
    if (at.$ref !== undefined && followed.has(at.$ref)) return
    const inside = at.$ref === undefined ? followed : new Set([...followed, at.$ref])
    const resolved = resolveSchema(at, components)
    const required = new Set(resolved.required)
    for (const [name, property] of Object.entries(resolved.properties ?? {})) {
      const path = prefix === '' ? name : `${prefix}.${name}`
      const target = resolveSchema(property, components)
      const description = property.description ?? target.description ?? ''
      fields.push({ path, type: typeOf(property, components), required: required.has(name), description })
      if (depth + 1 < depthMax) collect(property, path, inside, depth + 1)
    }
    if (resolved.items !== undefined && depth < depthMax) collect(resolved.items, `${prefix}[]`, inside, depth)
    for (const choice of [...(resolved.oneOf ?? []), ...(resolved.anyOf ?? [])]) {
      const known = new Set(fields.map((field) => field.path))
      const start = fields.length
      collect(choice, prefix, inside, depth)
      // Forms of a union share fields; each path is listed once.
      fields.push(...fields.splice(start).filter((field) => !known.has(field.path)))
    }
  }
}

export function typeOf(schema: Schema, components: Components, depth = 0): string {
  const resolved = resolveSchema(schema, components)
  const optionalNull = resolved.nullable === true ? ' or null' : ''
  if (resolved.const !== undefined) return JSON.stringify(resolved.const)
  if (resolved.enum !== undefined) return resolved.enum.map((value) => JSON.stringify(value)).join(' | ') + optionalNull
  const choices = resolved.oneOf ?? resolved.anyOf
  if (choices !== undefined) {
    if (depth >= depthMax) return 'one of several'
    return [...new Set(choices.map((choice) => typeOf(choice, components, depth + 1)))].join(' | ')
  }
  const types = Array.isArray(resolved.type)
    ? resolved.type
    : [resolved.type ?? (resolved.properties ? 'object' : 'any')]
  const words = types.map((type) => {
    if (type !== 'array') return type
    return depth >= depthMax || resolved.items === undefined
      ? 'list'
      : `list of ${typeOf(resolved.items, components, depth + 1)}`
  })
  return `${words.join(' | ')}${optionalNull}${boundsOf(resolved)}`
}

function boundsOf(schema: Schema): string {
  const notes = [
    schema.format,
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minItems, schema.maxItems, ' entries'),
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ].filter((note) => note !== undefined)
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`
}

function range(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  // zod writes the bounds of safe integers where the author wrote none.
  const low = least === undefined || least <= Number.MIN_SAFE_INTEGER ? undefined : least
  const high = most === undefined || most >= Number.MAX_SAFE_INTEGER ? undefined : most
  if (low !== undefined && high !== undefined) return `${low} to ${high}${unit}`
  if (low !== undefined) return `at least ${low}${unit}`
  return high === undefined ? undefined : `at most ${high}${unit}`
}

/** A value that fits: the author's example, else the required fields. */
export function exampleOf(schema: Schema, components: Components, depth = 0): unknown {
  const own = schema.example ?? schema.examples?.[0]
  if (own !== undefined) return own
  const resolved = resolveSchema(schema, components)
  const given = resolved.example ?? resolved.examples?.[0] ?? resolved.default ?? resolved.const ?? resolved.enum?.[0]
  if (given !== undefined) return given
  const choice = (resolved.oneOf ?? resolved.anyOf)?.[0]
  if (choice !== undefined && depth < depthMax) return exampleOf(choice, components, depth + 1)
  const type = Array.isArray(resolved.type) ? resolved.type[0] : resolved.type
  if (type === 'object' || resolved.properties !== undefined) {
    if (depth >= depthMax) return {}
    const required = Object.entries(resolved.properties ?? {}).filter(([name]) => resolved.required?.includes(name))
    return Object.fromEntries(required.map(([name, property]) => [name, exampleOf(property, components, depth + 1)]))
  }
  if (type === 'array')
    return resolved.items === undefined || depth >= depthMax ? [] : [exampleOf(resolved.items, components, depth + 1)]
  if (type === 'number' || type === 'integer') return Math.max(1, resolved.minimum ?? 1)
  if (type === 'boolean') return true
  return type === 'null' ? null : '…'
}
