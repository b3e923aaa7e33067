// How the text of several messages becomes one text. A run writes one message a step,
// and some wires and answers have no message ids to keep them apart: there a blank
// line stands between two messages, in streams and in stored answers alike.

export const blankLine = '\n\n'

/** The part of a dialect's state that a wire without message ids needs. */
export type TextState = {
  /** The message of the last text that was not empty; null before the first. */
  readonly textMessageId: string | null
}

/** The state after a text delta, and what has to stand before its text: a blank line if it begins another message. */
export function addText<State extends TextState>(
  state: State,
  { messageId, text }: { messageId: string; text: string },
): { state: State; separator: '' | typeof blankLine } {
  if (text === '' || messageId === state.textMessageId) return { state, separator: '' }
  const separator = state.textMessageId === null ? '' : blankLine
  return { state: { ...state, textMessageId: messageId }, separator }
}

/** Messages without text (steps that only called tools) leave no blank line. */
export function joinMessages(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(blankLine)
}
