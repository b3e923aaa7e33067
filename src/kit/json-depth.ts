// Checks how deep JSON is nested, both for a text (without parsing it) and for a value. A value that is
// thousands of levels deep can be parsed, but overflows the stack of recursive code that walks it.

/** Takes one pass and ignores brackets inside strings. The text need not be valid JSON. */
export function isDeeperThan(text: string, levels: number): boolean {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (inString) {
      if (unit === 0x5c) at += 1
      else if (unit === 0x22) inString = false
    } else if (unit === 0x22) inString = true
    else if (unit === 0x7b || unit === 0x5b) {
      depth += 1
      if (depth > levels) return true
    } else if (unit === 0x7d || unit === 0x5d) depth -= 1
  }
  return false
}

/** Does not recurse, so that a deep value cannot overflow the stack. */
export function isValueDeeperThan(value: unknown, levels: number): boolean {
  const rest: [value: unknown, depth: number][] = [[value, 1]]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [inner, depth] = next
    if (typeof inner !== 'object' || inner === null) continue
    if (depth > levels) return true
    for (const child of Object.values(inner)) rest.push([child, depth + 1])
  }
  return false
}
