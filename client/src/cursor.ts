// The id of a frame is `seq`, or `seq.index` if its event has several frames. As a cursor, `seq` alone stands for all
// frames of its event.

/** True if a frame with this id comes after the cursor. */
export function isAfter(id: string, cursor: string): boolean {
  const [seq = 0, index = Infinity] = id.split('.').map(Number)
  const [cursorSeq = 0, cursorIndex = Infinity] = cursor.split('.').map(Number)
  return seq > cursorSeq || (seq === cursorSeq && index > cursorIndex)
}
