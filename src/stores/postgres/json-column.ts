// Columns that hold JSON as text.

/** Null if the column is NULL or holds JSON that no longer parses. */
export function fromJson(stored: unknown): unknown {
  if (typeof stored !== 'string') return null
  try {
    return JSON.parse(stored)
  } catch {
    return null
  }
}

/** NULL for null and undefined. */
export function toJson(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value)
}
