// Joins the texts of several messages. A run writes one message per step, and some wires
// and answers have no message ids to separate them; those put a blank line between two
// messages, both in streams and in stored answers.

export const blankLine = '\n\n'

/** The state that a wire without message ids needs to separate messages. */
export type TextState = {
  /** The message of the last text that was not empty; null before the first. */
  readonly textMessageId: string | null
}

/** Returns the state after a text delta, and the separator to write before it: a blank line if a new message begins. */
export function addText<State extends TextState>(
  state: State,
  { messageId, text }: { messageId: string; text: string },
): { state: State; separator: '' | typeof blankLine } {
  if (text === '' || messageId === state.textMessageId) return { state, separator: '' }
  const separator = state.textMessageId === null ? '' : blankLine
  return { state: { ...state, textMessageId: messageId }, separator }
}

/** Skips messages without text (steps that only called tools), so they add no blank line. */
export function joinMessages(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(blankLine)
}
