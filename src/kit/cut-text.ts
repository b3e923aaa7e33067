// Cuts a text into pieces of bounded length, or to its beginning, never between the halves of a
// surrogate pair, so that each piece is valid text by itself.

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
    const end = endOfPiece(text, start + charsMax)
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

/** The first characters of a text, at most `charsMax`. */
export function beginningOf(text: string, charsMax: number): string {
  return text.slice(0, endOfPiece(text, charsMax))
}

/** The last place to cut at, up to `wanted`. */
function endOfPiece(text: string, wanted: number): number {
  if (wanted >= text.length) return text.length
  const last = text.charCodeAt(wanted - 1)
  return last >= 0xd800 && last <= 0xdbff ? wanted - 1 : wanted
}
