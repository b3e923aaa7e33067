// The message of anything that can be thrown, for log lines and sentences. Never throws: code of
// others may throw null, a text, or an object whose properties throw.

import { beginningOf } from './cut-text.ts'

const charsMax = 2000

/** The message of anything that can be thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    const message: unknown = thrown instanceof Error ? thrown.message : String(thrown)
    return beginningOf(String(message), charsMax) || 'no message'
  } catch {
    return 'an error that cannot be shown'
  }
}
