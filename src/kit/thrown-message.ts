// The message of anything that can be thrown, for log lines and sentences. Never throws: code of
// others may throw null, a text, or an object whose properties throw.

const charsMax = 2000

/** The message of anything that can be thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    const message: unknown = thrown instanceof Error ? thrown.message : String(thrown)
    return String(message).slice(0, charsMax) || 'no message'
  } catch {
    return 'an error that cannot be shown'
  }
}
