// The schema of any JSON value. zod has one, `z.json()`, which tries six schemas for each value
// inside: the arguments of one tool call with 80,000 empty lists kept the process busy for half a
// second, at each write and at each read. This one copies the value in a few milliseconds.

import { z } from 'zod'

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Far above the limits for what clients and models send, and far below what the stack holds. */
const depthMax = 1_000

/** Its output is a copy, without fields named `__proto__`. */
export const json = z.unknown().transform((value, context): JsonValue => {
  const copy = copyOf(value, 1)
  if (copy !== undefined) return copy
  context.addIssue({ code: 'custom', message: 'must be a JSON value' })
  return z.NEVER
})

/** Undefined if the value is not JSON. */
function copyOf(value: unknown, depth: number): JsonValue | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'object' || depth > depthMax) return undefined
  return Array.isArray(value) ? copyOfList(value, depth) : copyOfObject(value, depth)
}

function copyOfList(list: readonly unknown[], depth: number): JsonValue[] | undefined {
  const copy: JsonValue[] = []
  for (const item of list) {
    const inner = copyOf(item, depth + 1)
    if (inner === undefined) return undefined
    copy.push(inner)
  }
  return copy
}

function copyOfObject(value: object, depth: number): Record<string, JsonValue> | undefined {
  if (!isPlain(value)) return undefined
  const copy: Record<string, JsonValue> = {}
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') continue
    const inner = copyOf(item, depth + 1)
    if (inner === undefined) return undefined
    copy[key] = inner
  }
  return copy
}

/** False for dates, maps and other instances of classes. Objects of another realm are plain, too. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
