// Encodes events as lines of text and decodes them. Writing refuses an event that does
// not fit its schema. Reading never throws: a line that does not parse or no longer fits
// its schema decodes to null, and the caller skips and counts it.

import { AppError } from '../errors/app-error.ts'
import { jsonString } from '../kit/json-string.ts'
import { type EventType, eventBodies, type NewEvent, type RunEvent } from './event.ts'
import { type PlainCheck, plainCheck } from './plain-check.ts'

const plainChecks = new Map<string, PlainCheck>(
  Object.entries(eventBodies).map(([type, schema]) => [type, plainCheck(schema)]),
)

/**
 * Throws `event_invalid` if an event does not fit its schema. Returns it as it is read from the store: with the fields of the
 * schema only, in their order. So a dialect that shows a whole event sends the same bytes live and later.
 */
export function checkEvent<Checked extends NewEvent>(event: Checked): Checked {
  // Fast path: nearly all events are text deltas, so they are checked without the schema library.
  if (event.type === 'text.delta') {
    if (typeof event.data.text === 'string' && typeof event.data.messageId === 'string') return event
  } else if (plainChecks.get(event.type)?.(event.data) === true) return event
  const result = eventBodies[event.type]?.safeParse(event.data)
  if (result?.success) return { ...event, data: result.data }
  throw new AppError('event_invalid', `The event ${event.type} does not fit its schema.`, {
    details: {
      type: event.type,
      issues: result?.error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`),
    },
  })
}

/** The event as one line of JSON. It contains no newline, because JSON escapes control characters. */
export function encodeEvent(event: RunEvent): string {
  if (event.type === 'text.delta') {
    return `{"seq":${event.seq},"at":${event.at},"attempt":${event.attempt},"type":"text.delta","data":{"messageId":${jsonString(event.data.messageId)},"text":${jsonString(event.data.text)}}}`
  }
  return JSON.stringify(event)
}

/** The event of one stored line, or null if the line does not parse or does not fit its schema. */
export function decodeEvent(line: string): RunEvent | null {
  try {
    return eventFromJson(JSON.parse(line))
  } catch {
    // The line is not JSON, or it is nested deeper than the stack allows.
    return null
  }
}

/** The last instant that a date can hold; a later `at` would break every reader that shows it. */
const lastInstant = 8_640_000_000_000_000

/** The event, or null if the value does not fit the schema. Fields that no schema knows are left out of `data`. */
export function eventFromJson(value: unknown): RunEvent | null {
  if (value === null || typeof value !== 'object') return null
  const row = value as Record<string, unknown>
  if (!Number.isSafeInteger(row.seq) || (row.seq as number) < 1) return null
  if (typeof row.at !== 'number' || !(Math.abs(row.at) <= lastInstant) || !Number.isSafeInteger(row.attempt))
    return null
  const data = row.data as Record<string, unknown> | null
  if (row.type === 'text.delta') {
    return typeof data?.text === 'string' && typeof data.messageId === 'string' ? (row as RunEvent) : null
  }
  if (plainChecks.get(row.type as string)?.(data) === true) return row as RunEvent
  const schema =
    typeof row.type === 'string' && Object.hasOwn(eventBodies, row.type)
      ? eventBodies[row.type as EventType]
      : undefined
  if (schema === undefined) return null
  const parsed = schema.safeParse(data)
  return parsed.success ? ({ ...row, data: parsed.data } as RunEvent) : null
}
