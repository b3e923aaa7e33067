// Finds JSON in the answer of a model: the JSON is the whole text, or is inside one code
// fence around it, or stands between other words. Every search must pass over the text a
// bounded number of times, because the text can be anything.

/** How many candidates are parsed; further ones are ignored. */
const candidatesMax = 8
/** How many unclosed brackets are tolerated. Each of them costs one pass over the rest of the text. */
const unclosedMax = 16

/** The text without a code fence, if one surrounds all of it. */
export function withoutFence(text: string): string {
  const trimmed = text.trim()
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```') || trimmed.length < 6) return trimmed
  const lineEnd = trimmed.indexOf('\n')
  // A second fence inside means that the text has several blocks.
  if (lineEnd === -1 || trimmed.indexOf('```', 3) !== trimmed.length - 3) return trimmed
  return trimmed.slice(lineEnd + 1, -3).trim()
}

/** Parses the whole text, without a code fence around it. Undefined if it is not JSON. */
export function wholeJson(text: string): { value: unknown; text: string } | undefined {
  const bare = withoutFence(text)
  try {
    return { value: JSON.parse(bare), text: bare }
  } catch {
    return undefined
  }
}

/** Objects and arrays that stand between other words, longest first. */
export function embeddedJson(text: string): { value: unknown; text: string }[] {
  const found = new Map<string, unknown>()
  const longest = [...fencedBlocks(text), ...bracketed(text)].toSorted((a, b) => b.length - a.length)
  for (const candidate of longest.slice(0, candidatesMax)) {
    if (found.has(candidate)) continue
    try {
      const value: unknown = JSON.parse(candidate)
      if (typeof value === 'object' && value !== null) found.set(candidate, value)
    } catch {
      // Not JSON: the brackets belong to prose.
    }
  }
  return [...found].map(([json, value]) => ({ text: json, value }))
}

function fencedBlocks(text: string): string[] {
  const blocks: string[] = []
  let open = text.indexOf('```')
  while (open !== -1) {
    const close = text.indexOf('```', open + 3)
    if (close === -1) break
    const lineEnd = text.indexOf('\n', open)
    if (lineEnd !== -1 && lineEnd < close) keepLongest(blocks, text.slice(lineEnd + 1, close).trim())
    open = text.indexOf('```', close + 3)
  }
  return blocks
}

/** Regions from an opening bracket to the one that closes it, outermost only. */
function bracketed(text: string): string[] {
  const regions: string[] = []
  const opening = /[{[]/g
  let unclosed = 0
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const end = closingBracket(text, match.index)
    if (end !== -1) {
      keepLongest(regions, text.slice(match.index, end + 1))
      opening.lastIndex = end + 1
    } else if ((unclosed += 1) > unclosedMax) break
  }
  return regions
}

function keepLongest(kept: string[], text: string): void {
  if (kept.length < candidatesMax) {
    kept.push(text)
    return
  }
  let shortest = 0
  for (const [index, other] of kept.entries()) if (other.length < (kept[shortest]?.length ?? 0)) shortest = index
  if (text.length > (kept[shortest]?.length ?? 0)) kept[shortest] = text
}

/** The index of the bracket that closes the one at `start`, or -1. Brackets inside JSON strings do not count. */
function closingBracket(text: string, start: number): number {
  let depth = 0
  let inString = false
  for (let index = start; index < text.length; index++) {
    const char = text[index]
    if (inString) {
      if (char === '\\') index += 1
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') {
      depth -= 1
      if (depth === 0) return index
    }
  }
  return -1
}
