// A quick check for values that fit a schema exactly. Nearly all events do, and the schema library
// takes several times as long, because it also builds a copy and collects what is wrong. If the
// quick check says no, the library decides.

import type { z } from 'zod'
import { json } from './json-value.ts'

/**
 * True only if parsing the value would succeed and return an equal value with the same order of fields. False says nothing: the
 * value may have more fields than the schema, or another order, or the schema may have rules that are not known here.
 */
export type PlainCheck = (value: unknown) => boolean

type Definition = {
  type: string
  checks?: { _zod: { def: Rule } }[]
  shape?: Record<string, z.ZodType>
  catchall?: z.ZodType
  innerType?: z.ZodType
  keyType?: z.ZodType
  valueType?: z.ZodType
  element?: z.ZodType
  entries?: Record<string, string | number>
  values?: unknown[]
}

type Rule = { check: string; format?: string; minimum?: number; value?: unknown; inclusive?: boolean }

const never: PlainCheck = () => false

export function plainCheck(schema: z.ZodType): PlainCheck {
  if (schema === json) return isSimpleJson
  const definition = schema._zod.def as unknown as Definition
  const rules = (definition.checks ?? []).map((check) => check._zod.def)
  switch (definition.type) {
    case 'object':
      return rules.length === 0 && definition.catchall === undefined ? objectCheck(definition.shape ?? {}) : never
    case 'array':
      return rules.length === 0 ? arrayCheck(definition.element) : never
    case 'record':
      return rules.length === 0 && isAnyString(definition.keyType) ? recordCheck(definition.valueType) : never
    case 'string':
      return stringCheck(rules)
    case 'number':
      return numberCheck(rules)
    case 'boolean':
      return rules.length === 0 ? (value) => typeof value === 'boolean' : never
    case 'enum':
      return memberCheck(Object.values(definition.entries ?? {}))
    case 'literal':
      return memberCheck(definition.values ?? [])
    case 'nullable': {
      const inner = innerCheck(definition.innerType)
      return (value) => value === null || inner(value)
    }
    case 'optional':
      return innerCheck(definition.innerType)
    default:
      return never
  }
}

function innerCheck(schema: z.ZodType | undefined): PlainCheck {
  return schema === undefined ? never : plainCheck(schema)
}

/** Lists and objects are left to the schema, which copies them. */
function isSimpleJson(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || value === null || Number.isFinite(value)
}

function isAnyString(schema: z.ZodType | undefined): boolean {
  const definition = schema?._zod.def as unknown as Definition | undefined
  return definition?.type === 'string' && (definition.checks ?? []).length === 0
}

function recordCheck(value: z.ZodType | undefined): PlainCheck {
  const check = innerCheck(value)
  return (record) => {
    if (!isObject(record)) return false
    for (const name in record) if (name === '__proto__' || !check(record[name])) return false
    return true
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function arrayCheck(element: z.ZodType | undefined): PlainCheck {
  const check = innerCheck(element)
  return (value) => Array.isArray(value) && value.every(check)
}

function memberCheck(members: readonly unknown[]): PlainCheck {
  const known = new Set(members)
  return (value) => known.has(value)
}

function stringCheck(rules: readonly Rule[]): PlainCheck {
  let minimum = 0
  for (const { check, minimum: least } of rules) {
    if (check !== 'min_length' || least === undefined) return never
    minimum = Math.max(minimum, least)
  }
  return (value) => typeof value === 'string' && value.length >= minimum
}

function numberCheck(rules: readonly Rule[]): PlainCheck {
  let isInteger = false
  let least = Number.NEGATIVE_INFINITY
  let above = Number.NEGATIVE_INFINITY
  for (const { check, format, value, inclusive } of rules) {
    if (check === 'number_format' && format === 'safeint') isInteger = true
    else if (check === 'greater_than' && typeof value === 'number') {
      if (inclusive === true) least = Math.max(least, value)
      else above = Math.max(above, value)
    } else return never
  }
  return (value) =>
    typeof value === 'number' &&
    (isInteger ? Number.isSafeInteger(value) : Number.isFinite(value)) &&
    value >= least &&
    value > above
}

function objectCheck(shape: Record<string, z.ZodType>): PlainCheck {
  const names = Object.keys(shape)
  const checks = Object.values(shape).map(plainCheck)
  const isOptional = Object.values(shape).map(({ _zod }) => _zod.def.type === 'optional')
  return (value) => {
    if (!isObject(value)) return false
    // The fields have to come in the order of the schema, so each is looked for after the one before it.
    let next = 0
    for (const name in value) {
      while (names[next] !== name) {
        if (isOptional[next] !== true) return false
        next += 1
      }
      if (!(checks[next] as PlainCheck)(value[name])) return false
      next += 1
    }
    while (isOptional[next] === true) next += 1
    return next === names.length
  }
}
