// Finds the line of a configuration file that a problem is about. Node keeps line numbers
// when it strips types. Pure.

import { stripTypeScriptTypes } from 'node:module'
import { pathToFileURL } from 'node:url'

/** Nobody writes longer lines by hand. */
const lineCharsMax = 1000

/** The line of the outermost property with this name; null if there is none. */
export function lineOfKey(source: string, key: string): number | null {
  if (!/^\w+$/.test(key)) return null
  const property = new RegExp(`^(\\s*)(.*[{,]\\s*)?(['"]?)${key}\\3\\s*(?:[:(,}]|$)`)
  let best: { line: number; depth: number } | null = null
  for (const [index, text] of source.split('\n').entries()) {
    const found = property.exec(text.slice(0, lineCharsMax))
    if (found === null) continue
    // What stands behind something else on its line is usually deeper than that.
    const depth = (found[1] ?? '').length + (found[2] === undefined ? 0 : lineCharsMax)
    if (best === null || depth < best.depth) best = { line: index + 1, depth }
  }
  return best?.line ?? null
}

/** The line at which loading the file failed; null if that is not known. */
export function lineOfLoadError(error: unknown, file: string, source: string): number | null {
  const { stack = '', message = '', name = '' } = error as { stack?: string; message?: string; name?: string }
  for (const path of [pathToFileURL(file).href, file]) {
    const at = stack.indexOf(`${path}:`)
    const line = at < 0 ? undefined : /^\d+/.exec(stack.slice(at + path.length + 1))?.[0]
    if (line !== undefined) return Number(line)
  }
  // An import that was not found is not in the stack.
  const missing = /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1]
  if (missing !== undefined) {
    const imported = missing.split(/[\\/]/).at(-1) ?? ''
    const index = source.split('\n').findIndex((text) => /\b(?:import|from)\b/.test(text) && text.includes(imported))
    return index < 0 ? null : index + 1
  }
  return name === 'SyntaxError' ? lineOfSyntaxError(source) : null
}

/** V8 does not say where a syntax error of a module is; the parser for TypeScript does. */
function lineOfSyntaxError(source: string): number | null {
  try {
    stripTypeScriptTypes(source)
    return null
  } catch (error) {
    const line = /^[^\n]*:(\d+)\n/.exec((error as Error).stack ?? '')?.[1]
    return line === undefined ? null : Number(line)
  }
}
