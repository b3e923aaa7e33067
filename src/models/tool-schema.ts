// The schema of a tool's arguments as providers accept it. Anthropic, OpenAI and others refuse
// a request, with all its tools, if one schema has `anyOf`, `oneOf`, `allOf` or the like at its
// top level; inside of properties they accept them. MCP servers send such schemas. So the
// alternatives are merged into one object that allows what each of them allows, and the
// original rules are told in its description. Arguments are still checked by the original.

type Schema = Record<string, unknown>

/** Longer rules are not told: the model learns of them from the check of its arguments. */
const rulesCharsMax = 4_000
const refusedWords = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'if', 'then', 'else'] as const

/** Tools keep their schema, and each step of each run sends them all. */
const merged = new WeakMap<Schema, Schema>()

export function toProviderSchema(schema: Schema): Schema {
  const rules = Object.fromEntries(refusedWords.flatMap((word) => (word in schema ? [[word, schema[word]]] : [])))
  if (Object.keys(rules).length === 0) return schema
  const known = merged.get(schema) ?? withoutRules(schema, rules)
  merged.set(schema, known)
  return known
}

function withoutRules(schema: Schema, rules: Schema): Schema {
  const kept = Object.fromEntries(Object.entries(schema).filter(([word]) => !(word in rules)))
  const merger = new Merger(schema)
  const required = merger.add(schema)
  const properties = merger.properties()
  // It would forbid the properties that only the alternatives have.
  if (Object.keys(properties).some((name) => !Object.hasOwn(objectOf(schema['properties']), name))) {
    delete kept['additionalProperties']
  }
  const told = JSON.stringify(rules)
  const description = [
    schema['description'],
    told.length <= rulesCharsMax ? `The arguments must also fit ${told}` : null,
  ]
  return {
    ...kept,
    type: 'object',
    properties,
    ...(required.size === 0 ? {} : { required: [...required] }),
    description: description.filter((text) => typeof text === 'string').join('\n'),
  }
}

/** Collects what an object that fits a schema may have. Each part of the schema is read once, so the work is bounded. */
class Merger {
  readonly #root: Schema
  readonly #seen = new Set<Schema>()
  /** For each property, its different schemas by their text. */
  readonly #variants = new Map<string, Map<string, unknown>>()

  constructor(root: Schema) {
    this.#root = root
  }

  /** Returns the names of the properties that each object must have. */
  add(schema: Schema): Set<string> {
    if (this.#seen.has(schema)) return new Set()
    this.#seen.add(schema)
    for (const [name, property] of Object.entries(objectOf(schema['properties']))) {
      const variants = this.#variants.get(name) ?? new Map<string, unknown>()
      this.#variants.set(name, variants.set(JSON.stringify(property), property))
    }
    const required = new Set(listOf(schema['required']).filter((name) => typeof name === 'string'))
    for (const part of this.#addAll(listOf(schema['allOf']))) for (const name of part) required.add(name)
    for (const word of ['anyOf', 'oneOf']) {
      const parts = this.#addAll(listOf(schema[word]))
      for (const name of parts[0] ?? []) if (parts.every((part) => part.has(name))) required.add(name)
    }
    this.#addAll(['then', 'else'].flatMap((word) => (word in schema ? [schema[word]] : [])))
    return required
  }

  /** A property that alternatives describe differently may be any of these. */
  properties(): Schema {
    const properties = [...this.#variants].map(([name, variants]): [string, unknown] => {
      const schemas = [...variants.values()]
      return [name, schemas.length === 1 ? schemas[0] : { anyOf: schemas }]
    })
    return Object.fromEntries(properties)
  }

  #addAll(schemas: readonly unknown[]): Set<string>[] {
    return schemas.map((schema) => this.add(resolved(objectOf(schema), this.#root)))
  }
}

/** The schema that a reference inside the document leads to, or the schema itself. */
function resolved(schema: Schema, root: Schema): Schema {
  const reference = schema['$ref']
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return schema
  let found: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Object.hasOwn(objectOf(found), key) ? objectOf(found)[key] : undefined
  }
  return objectOf(found)
}

function objectOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {}
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
