// The rules of a schema that check a single value without looking inside it: its type,
// its allowed values, and the rules for numbers and texts.

import { hasFormat } from './formats.ts'
import { isObject, type SchemaObject } from './keywords.ts'
import type { SchemaPatterns } from './schema-patterns.ts'
import { charsPerStep, type Steps } from './steps.ts'

/** How much pattern work (characters times pattern instructions) costs one step. */
const patternWorkPerStep = 4
const formatCharsMax = 4096

export function typeProblem(schema: SchemaObject, value: unknown): string | null {
  const { type } = schema
  if (type === undefined) return null
  const types = (Array.isArray(type) ? type : [type]) as string[]
  if (types.some((one) => isOfType(one, value)) || (value === null && schema['nullable'] === true)) return null
  return `must be ${types.join(',')}`
}

/** An error message that is built only if it is reported. */
export type LazyMessage = () => string

const none: readonly LazyMessage[] = []

export function leafProblems(
  schema: SchemaObject,
  value: unknown,
  patterns: SchemaPatterns,
  steps: Steps,
): readonly LazyMessage[] {
  const wrong: LazyMessage[] = []
  const { enum: allowed, const: constant } = schema
  if (Array.isArray(allowed) && !allowed.some((one) => equal(one, value, steps)))
    wrong.push(() => `must be equal to one of the allowed values (${formatValues(allowed)})`)
  if (constant !== undefined && !equal(constant, value, steps))
    wrong.push(() => `must be equal to constant (${formatValues([constant])})`)
  if (typeof value === 'number') wrong.push(...numberProblems(schema, value))
  else if (typeof value === 'string') wrong.push(...textProblems(schema, value, patterns, steps))
  return wrong.length === 0 ? none : wrong
}

/** Also true for a pattern that cannot be used. */
export function matches(source: string, text: string, patterns: SchemaPatterns, steps: Steps): boolean {
  const pattern = patterns.find(source, steps)
  if (pattern === undefined) return true
  steps.spend(1 + (text.length * pattern.size) / patternWorkPerStep)
  return pattern.test(text)
}

function equal(left: unknown, right: unknown, steps: Steps): boolean {
  steps.spend(1)
  if (left === right) return true
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false
    return left.every((one, index) => equal(one, right[index], steps))
  }
  if (!isObject(left) || !isObject(right)) return false
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key], steps))
}

function numberProblems(schema: SchemaObject, value: number): LazyMessage[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Record<
    string,
    number | undefined
  >
  const wrong: LazyMessage[] = []
  if (minimum !== undefined && !(value >= minimum)) wrong.push(() => `must be >= ${minimum}`)
  if (maximum !== undefined && !(value <= maximum)) wrong.push(() => `must be <= ${maximum}`)
  if (exclusiveMinimum !== undefined && !(value > exclusiveMinimum)) wrong.push(() => `must be > ${exclusiveMinimum}`)
  if (exclusiveMaximum !== undefined && !(value < exclusiveMaximum)) wrong.push(() => `must be < ${exclusiveMaximum}`)
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) wrong.push(() => `must be multiple of ${multipleOf}`)
  return wrong
}

/** Decimal fractions are not exact: 19.99 / 0.01 is 1998.9999999999998. The error of such a division is at most two units of its last place. */
function isMultiple(value: number, unit: number): boolean {
  const quotient = value / unit
  if (Number.isInteger(quotient)) return true
  if (Number.isInteger(value) && Number.isInteger(unit)) return false
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * 2 * Number.EPSILON
}

function textProblems(schema: SchemaObject, value: string, patterns: SchemaPatterns, steps: Steps): LazyMessage[] {
  const { minLength, maxLength } = schema as Record<string, number | undefined>
  const { pattern, format } = schema
  const wrong: LazyMessage[] = []
  if (minLength !== undefined || maxLength !== undefined) {
    steps.spend(value.length / charsPerStep)
    const length = lengthOf(value)
    if (minLength !== undefined && length < minLength)
      wrong.push(() => `must NOT have fewer than ${minLength} characters`)
    if (maxLength !== undefined && length > maxLength)
      wrong.push(() => `must NOT have more than ${maxLength} characters`)
  }
  if (typeof pattern === 'string' && !matches(pattern, value, patterns, steps))
    wrong.push(() => `must match pattern "${pattern}"`)
  if (typeof format === 'string') {
    steps.spend(Math.min(value.length, formatCharsMax) / charsPerStep)
    if (!hasFormat(format, value, steps)) wrong.push(() => `must match format "${format}"`)
  }
  return wrong
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      // JSON such as 1e999 is read as infinity, which would be written as null.
      return Number.isFinite(value)
    case 'null':
      return value === null
    case 'object':
      return isObject(value)
    default:
      return typeof value === type
  }
}

/** The length in code points: a surrogate pair counts as one. */
function lengthOf(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length - 1; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(at + 1)
    if (next >= 0xdc00 && next <= 0xdfff) {
      length -= 1
      at += 1
    }
  }
  return length
}

/** The values as text, truncated if the list is long. */
function formatValues(values: readonly unknown[]): string {
  const text = JSON.stringify(values.slice(0, 50)).slice(1, -1)
  return text.length > 1000 ? `${text.slice(0, 1000)}…` : text
}
