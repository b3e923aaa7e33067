// Shortens the arguments of a call for display beside the tool's name, so that a stream
// does not carry, for example, the whole file that a tool is about to write. Pure.

import type { JsonValue } from '../../journal/event.ts'

const charsMax = 500
const itemsMax = 20
const depthMax = 4

export function preview(value: JsonValue | undefined, depth = 0): JsonValue | undefined {
  if (typeof value === 'string') return cut(value)
  if (value === undefined || value === null || typeof value !== 'object') return value
  if (depth >= depthMax) return '…'
  if (Array.isArray(value)) {
    const kept = value.slice(0, itemsMax).map((item) => preview(item, depth + 1) as JsonValue)
    return value.length > itemsMax ? [...kept, `… (${value.length - itemsMax} more)`] : kept
  }
  const entries = Object.entries(value).slice(0, itemsMax)
  return Object.fromEntries(entries.map(([key, item]) => [cut(key), preview(item, depth + 1) as JsonValue]))
}

/** Never splits a surrogate pair. */
function cut(text: string): string {
  if (text.length <= charsMax) return text
  const kept = text.slice(0, charsMax)
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}… (${text.length} characters)`
}
