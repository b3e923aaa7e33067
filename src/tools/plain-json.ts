// Turns any JavaScript value into JSON. It never throws and its work is bounded, because the
// values come from code of the operator (a tool in polylog.config.ts), which has done its
// work by then: a result that cannot be shown must not turn a call that succeeded into one
// that failed. What JSON lacks is written as the nearest thing that it has; what is left out
// is replaced by a note in square brackets.

import type { JsonValue } from '../journal/event.ts'
import { messageOf } from '../kit/thrown-message.ts'

const depthMax = 100
/**
 * Of one result, as of the arguments of one answer: a result is copied, written as JSON and shortened for people, and all other
 * requests wait meanwhile.
 */
export const resultValuesMax = 100_000
/** Stands for the entries that are beyond one of the limits. */
export const restLeftOut = `[the rest is left out: a result may have ${resultValuesMax} values and 10 MiB of text]`
/** As much as one message of an MCP server. */
const charsMax = 10 * 1024 * 1024

export function toPlainJson(value: unknown): JsonValue {
  return new Converter().convert(value, 1) ?? null
}

class Converter {
  private readonly ancestors = new Set<object>()
  private values = 0
  private chars = 0

  /** Undefined if JSON leaves the value out. */
  convert(value: unknown, depth: number, isConverted = false): JsonValue | undefined {
    this.values += 1
    switch (typeof value) {
      case 'string':
        return this.text(value)
      case 'number':
        return Number.isFinite(value) ? value : null
      case 'boolean':
        return value
      case 'bigint':
        return this.text(value.toString())
      case 'undefined':
      case 'function':
      case 'symbol':
        return undefined
      case 'object':
        return value === null ? null : this.object(value, depth, isConverted)
    }
  }

  private text(value: string): string {
    const left = Math.max(0, charsMax - this.chars)
    this.chars += value.length
    return value.length <= left ? value : `${value.slice(0, left)}[cut: ${value.length} characters in all]`
  }

  private object(value: object, depth: number, isConverted: boolean): JsonValue | undefined {
    if (this.ancestors.has(value)) return '[left out: it contains itself]'
    if (depth > depthMax) return `[left out: nested more than ${depthMax} deep]`
    this.ancestors.add(value)
    try {
      return this.members(value, depth, isConverted)
    } catch (error) {
      // A getter, a proxy or a toJSON of the tool's own classes threw.
      return `[left out: ${messageOf(error)}]`
    } finally {
      this.ancestors.delete(value)
    }
  }

  private members(value: object, depth: number, isConverted: boolean): JsonValue | undefined {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
    const { toJSON } = value as { toJSON?: unknown }
    if (typeof toJSON === 'function' && !isConverted) return this.convert(toJSON.call(value, ''), depth + 1, true)
    if (Array.isArray(value)) return this.list(value, depth)
    if (value instanceof Set) return this.list(value, depth)
    if (value instanceof Map) {
      const keys = [...value.keys()]
      return keys.every((key) => typeof key === 'string') ? this.fields(value, depth) : this.list(value, depth)
    }
    if (value instanceof Error) return this.text(`${value.name}: ${value.message}`)
    return this.fields(ownFields(value), depth)
  }

  private list(items: Iterable<unknown>, depth: number): JsonValue[] {
    const list: JsonValue[] = []
    for (const item of items) {
      if (this.isFull()) {
        list.push(restLeftOut)
        break
      }
      list.push(this.convert(item, depth + 1) ?? null)
    }
    return list
  }

  private fields(entries: Iterable<[string, unknown]>, depth: number): JsonValue {
    const fields: [string, JsonValue][] = []
    for (const [key, item] of entries) {
      if (this.isFull()) {
        fields.push([restLeftOut, null])
        break
      }
      this.chars += key.length
      const converted = this.convert(item, depth + 1)
      if (converted !== undefined) fields.push([key, converted])
    }
    return Object.fromEntries(fields)
  }

  private isFull(): boolean {
    return this.values >= resultValuesMax || this.chars >= charsMax
  }
}

/** One field at a time, so that a getter that throws is met where its object is converted. */
function* ownFields(value: object): Generator<[string, unknown]> {
  for (const key of Object.keys(value)) yield [key, (value as Record<string, unknown>)[key]]
}
