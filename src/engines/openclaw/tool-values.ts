// Values that the gateway reports about its tools: content blocks, arguments, results.

import type { JsonValue } from '../../journal/event.ts'
import { isDeeperThan, isValueDeeperThan } from '../../kit/json-depth.ts'
import { fieldsOf, listOf, textOf } from './gateway-frames.ts'

const depthMax = 32

/** The text of content blocks. Other blocks, such as images, are left out. */
export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((block) => (fieldsOf(block)['type'] === 'text' ? textOf(fieldsOf(block)['text']) : ''))
    .filter((text) => text !== '')
    .join('\n')
}

/** A value that came out of JSON.parse; an empty object if it is too deep for the journal. */
export function boundedJson(value: unknown): JsonValue {
  if (value === undefined || isValueDeeperThan(value, depthMax)) return {}
  return value as JsonValue
}

/** Tools report text. If it is a JSON object or list, it is shown as one. */
export function toolOutput(text: string): JsonValue {
  if (!/^\s*[{[]/.test(text) || isDeeperThan(text, depthMax)) return text
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return text
  }
}
