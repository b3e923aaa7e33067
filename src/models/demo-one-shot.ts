// What the demo model answers if the final answer has to fit a schema: the answer that code
// has computed, or else one that is filled in from the words of the request.

import type { JsonValue } from '../journal/event.ts'
import { fillSchema } from './demo-form.ts'
import type { ModelRequest } from './model.ts'
import { isRecord } from '../kit/is-record.ts'

/** The request is untrusted and may be long; only this much of it is read. */
const textCharsMax = 64 * 1024

/** Undefined if any text is an answer. */
export function planDemoAnswerTo({ answer, messages }: ModelRequest): string | undefined {
  if (answer === undefined) return undefined
  if (answer.computed !== undefined) return JSON.stringify(answer.computed)
  const asked = messages.find((message) => message.role === 'user')?.content ?? ''
  const input = parsedObject(asked.slice(0, textCharsMax))
  const words = Object.values(input).filter((value) => typeof value === 'string')
  const text = words.length === 0 ? asked.slice(0, textCharsMax) : words.join('\n')
  return JSON.stringify(fillSchema(answer.schema, { text, input, parameter: {}, answers: [] }))
}

function parsedObject(text: string): Record<string, JsonValue> {
  try {
    const value = JSON.parse(text) as JsonValue
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}
