// How the text of several messages becomes one text. A run writes one message a step,
// and some wires and answers have no message ids to keep them apart: there a blank
// line stands between two messages, in streams and in stored answers alike.

export const blankLine = '\n\n'

/**
 * True if `delta` is the first text of another message than the text before it, so that a blank line comes first.
 * `lastMessageId` is the message of the last text that was not empty; null before the first.
 */
export function startsNewMessage(lastMessageId: string | null, delta: { messageId: string; text: string }): boolean {
  return lastMessageId !== null && lastMessageId !== delta.messageId && delta.text !== ''
}

/** Messages without text (steps that only called tools) leave no blank line. */
export function joinMessages(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(blankLine)
}
