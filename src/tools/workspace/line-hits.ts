// Finds the matching lines of a text, with line number, column and preview.

export type Hit = { line: number; column: number; preview: string }

const previewCharsMax = 300

/** The first hit of each line. */
export function hitsIn(text: string, hitsMax: number, columnOf: (line: string) => number): Hit[] {
  const hits: Hit[] = []
  let number = 0
  for (let at = 0; at <= text.length && hits.length < hitsMax;) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at, end < 0 ? text.length : end)
    number += 1
    const column = columnOf(line)
    if (column >= 0 && !(line === '' && end < 0)) {
      hits.push({ line: number, column: column + 1, preview: preview(line, column) })
    }
    if (end < 0) break
    at = end + 1
  }
  return hits
}

function preview(line: string, column: number): string {
  const from = line.length <= previewCharsMax ? 0 : Math.max(0, column - 60)
  return line.slice(from, from + previewCharsMax).trimEnd()
}
