// Checks how deep JSON is nested and how many values it has, both for a text (without parsing it) and for a value. A value that is thousands of levels deep can be parsed, but overflows the stack of recursive code that walks it, and a
// short text may have more values than can be walked in an instant.

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

/** About how many values the text has, or `max + 1` if they are more. Takes one pass. The text need not be valid JSON. */
export function valuesIn(text: string, max: number): number {
  let values = 1
  let inString = false
  for (let at = 0; at < text.length && values <= max; at += 1) {
    const unit = text.charCodeAt(at)
    if (inString) {
      if (unit === 0x5c) at += 1
      else if (unit === 0x22) inString = false
    } else if (unit === 0x22) inString = true
    // Each value but the outermost comes after a comma or an opening bracket.
    else if (unit === 0x2c || unit === 0x7b || unit === 0x5b) values += 1
  }
  return values
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

/** How many values there are in this one, itself included, or `max + 1` if they are more. Does not recurse. */
export function valuesInValue(value: unknown, max: number): number {
  let values = 1
  const rest: unknown[] = [value]
  for (let next = rest.pop(); next !== undefined && values <= max; next = rest.pop()) {
    if (typeof next !== 'object' || next === null) continue
    // Reading the fields of a large object takes twice as long as listing their names.
    values += Array.isArray(next) ? next.length : Object.keys(next).length
    if (values > max) return max + 1
    const children: unknown[] = Array.isArray(next) ? next : Object.values(next)
    for (const child of children) if (typeof child === 'object' && child !== null) rest.push(child)
  }
  return values
}
