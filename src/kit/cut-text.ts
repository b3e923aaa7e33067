// Cuts a text into pieces of bounded length, never between the halves of a surrogate
// pair, so that each piece is valid text by itself.

/**
 * The longest text that always fits into one event. An event has at most 1 MiB when it is written, and a UTF-16 unit takes up
 * to six bytes when it is escaped as JSON.
 */
export const pieceCharsMax = 128 * 1024

export function cutText(text: string, charsMax: number = pieceCharsMax): string[] {
  if (text.length <= charsMax) return text === '' ? [] : [text]
  const pieces: string[] = []
  let start = 0
  while (start < text.length) {
    let end = Math.min(start + charsMax, text.length)
    const last = text.charCodeAt(end - 1)
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}
