// The difference of two texts, word by word: the shortest list of insertions and deletions (Myers 1986), with a bound on
// its work. Pure.

/** A piece that both texts have, or only the left or the right one. */
export type DiffPart = { kind: 'same' | 'left' | 'right'; text: string }

/** Texts that differ by more words than this count as altogether different after what they share at both ends. */
const editsMax = 1500
const tinyChars = 2

export function diffTexts(left: string, right: string): DiffPart[] {
  const [a, b] = [wordsOf(left), wordsOf(right)]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1
  const parts = [
    ...a.slice(0, head).map((text): DiffPart => ({ kind: 'same', text })),
    ...middleOf(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map((text): DiffPart => ({ kind: 'same', text })),
  ]
  return joined(parts)
}

/** How much of both texts is the same, from 0 to 1. Spaces do not count. */
export function similarity(parts: readonly DiffPart[]): number {
  let same = 0
  let all = 0
  for (const { kind, text } of parts) {
    const chars = text.replace(/\s+/g, '').length
    all += kind === 'same' ? 2 * chars : chars
    if (kind === 'same') same += 2 * chars
  }
  return all === 0 ? 1 : same / all
}

/** Words, spaces and signs. Scripts that are written without spaces are cut into characters. */
function wordsOf(text: string): string[] {
  return (
    text.match(
      /\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{M}\p{N}_](?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{M}\p{N}_])*|[^\s]/gu,
    ) ?? []
  )
}

function middleOf(a: readonly string[], b: readonly string[]): DiffPart[] {
  const apart = [
    ...a.map((text): DiffPart => ({ kind: 'left', text })),
    ...b.map((text): DiffPart => ({ kind: 'right', text })),
  ]
  if (a.length === 0 || b.length === 0) return apart
  const trace = reach(a, b)
  return trace === null ? apart : walkBack(a, b, trace)
}

/** For each number of edits, how far every diagonal gets; null if too many edits are needed. */
function reach(a: readonly string[], b: readonly string[]): Int32Array[] | null {
  const max = Math.min(a.length + b.length, editsMax)
  const at = new Int32Array(2 * max + 3)
  const middle = max + 1
  const trace: Int32Array[] = []
  for (let edits = 0; edits <= max; edits++) {
    trace.push(at.slice(middle - edits - 1, middle + edits + 2))
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = isDown(at, middle, diagonal, edits) ? far(at, middle + diagonal + 1) : far(at, middle + diagonal - 1) + 1
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1
      at[middle + diagonal] = x
      if (x >= a.length && x - diagonal >= b.length) return trace
    }
  }
  return null
}

/** True if the best way to the diagonal is an insertion. */
function isDown(at: Int32Array, middle: number, diagonal: number, edits: number): boolean {
  return diagonal === -edits || (diagonal !== edits && far(at, middle + diagonal - 1) < far(at, middle + diagonal + 1))
}

function far(at: Int32Array, index: number): number {
  return at[index] ?? 0
}

function walkBack(a: readonly string[], b: readonly string[], trace: readonly Int32Array[]): DiffPart[] {
  const parts: DiffPart[] = []
  let [x, y] = [a.length, b.length]
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    // Each entry holds the diagonals from -edits - 1 to edits + 1.
    const at = trace[edits] ?? new Int32Array()
    const middle = edits + 1
    const diagonal = x - y
    const before = isDown(at, middle, diagonal, edits) ? diagonal + 1 : diagonal - 1
    const [fromX, fromY] = edits === 0 ? [0, 0] : [far(at, middle + before), far(at, middle + before) - before]
    while (x > fromX && y > fromY) {
      x -= 1
      y -= 1
      parts.push({ kind: 'same', text: a[x] ?? '' })
    }
    if (edits === 0) break
    if (x > fromX) parts.push({ kind: 'left', text: a[(x -= 1)] ?? '' })
    else parts.push({ kind: 'right', text: b[(y -= 1)] ?? '' })
  }
  return parts.reverse()
}

/**
 * Neighbours of one kind become one part. Within a change, what only the left text has comes first. A shared word of two
 * letters between two changes is part of the change: otherwise texts that have little in common become confetti.
 */
function joined(parts: readonly DiffPart[]): DiffPart[] {
  const result: DiffPart[] = []
  let gap = { left: '', right: '' }
  /** What both texts have after the gap. */
  let same = ''
  const close = () => {
    if (gap.left !== '') result.push({ kind: 'left', text: gap.left })
    if (gap.right !== '') result.push({ kind: 'right', text: gap.right })
    if (same !== '') result.push({ kind: 'same', text: same })
    gap = { left: '', right: '' }
    same = ''
  }
  for (const { kind, text } of parts) {
    if (kind === 'same') same += text
    else {
      const isTiny = (gap.left !== '' || gap.right !== '') && same.trim().length <= tinyChars
      if (isTiny) gap = { left: gap.left + same, right: gap.right + same }
      else close()
      same = ''
      gap[kind] += text
    }
  }
  close()
  return result
}
