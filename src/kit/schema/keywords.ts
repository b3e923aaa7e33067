// The supported keywords of JSON Schema (draft 7 to 2020-12): which of them contain
// schemas, and which values each may have. Unknown keywords are ignored.

export type SchemaObject = Record<string, unknown>

export type Schema = SchemaObject | boolean

export const schemaWords = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
] as const

export const schemaListWords = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const

export const schemaMapWords = [
  '$defs',
  'definitions',
  'dependentSchemas',
  'patternProperties',
  'properties',
  'dependencies',
] as const

const typeNames = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])
const numberWords = ['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'multipleOf']
const countWords = [
  'maxItems',
  'minItems',
  'maxLength',
  'minLength',
  'maxProperties',
  'minProperties',
  'maxContains',
  'minContains',
]
const textWords = ['pattern', 'format', '$ref', '$dynamicRef', '$recursiveRef', '$anchor', '$dynamicAnchor', '$id']

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || isObject(value)
}

/** What is wrong with the keywords of one schema, or null. Does not look into nested schemas. */
export function keywordProblem(schema: SchemaObject): string | null {
  const has = (word: string) => schema[word] !== undefined
  const { type } = schema
  if (has('type')) {
    const types = Array.isArray(type) ? type : [type]
    if (types.length === 0 || !types.every((one) => typeof one === 'string' && typeNames.has(one)))
      return `type must be one or more of ${[...typeNames].join(', ')}`
  }
  for (const word of numberWords) {
    if (has(word) && typeof schema[word] !== 'number') return `${word} must be a number`
  }
  if (has('multipleOf') && !((schema['multipleOf'] as number) > 0)) return 'multipleOf must be greater than 0'
  for (const word of countWords) {
    if (has(word) && !(Number.isInteger(schema[word]) && (schema[word] as number) >= 0))
      return `${word} must be a whole number from 0 on`
  }
  for (const word of textWords) if (has(word) && typeof schema[word] !== 'string') return `${word} must be a text`
  for (const word of schemaWords) {
    const value = schema[word]
    const fits = isSchema(value) || (word === 'items' && Array.isArray(value) && value.every(isSchema))
    if (has(word) && !fits) return `${word} must be a schema`
  }
  for (const word of schemaListWords) {
    const value = schema[word]
    if (has(word) && !(Array.isArray(value) && value.length > 0 && value.every(isSchema)))
      return `${word} must be a list of schemas`
  }
  for (const word of schemaMapWords) {
    const value = schema[word]
    const fits =
      isObject(value) &&
      Object.values(value).every((one) => isSchema(one) || (word === 'dependencies' && isTextList(one)))
    if (has(word) && !fits) return `${word} must be an object of schemas`
  }
  if (has('enum') && !Array.isArray(schema['enum'])) return 'enum must be a list'
  if (has('required') && !isTextList(schema['required'])) return 'required must be a list of names'
  if (has('uniqueItems') && typeof schema['uniqueItems'] !== 'boolean') return 'uniqueItems must be true or false'
  if (has('dependentRequired')) {
    const value = schema['dependentRequired']
    if (!isObject(value) || !Object.values(value).every(isTextList))
      return 'dependentRequired must be an object of lists of names'
  }
  return null
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
