// Finds the line of a configuration file that a problem is about. Node keeps line numbers
// when it strips types. Pure.

import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'

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

export type LoadErrorPlace = { file: string; line: number | null }

/** Where loading the file failed: in it, or in a file that it imports. */
export function placeOfLoadError(error: unknown, file: string, source: string): LoadErrorPlace {
  const { stack = '', message = '', name = '' } = error as { stack?: string; message?: string; name?: string }
  // Errors of the parser begin with their place, before the message.
  const [, head, headLine] = /^([^\n]+):(\d+)\n/.exec(stack) ?? []
  if (head !== undefined && !head.startsWith('node:')) return { file: asPath(head), line: Number(headLine) }
  // An import that was not found is not in the stack.
  const missing = /Cannot find (?:package|module) '([^']+)' imported from ([^\n]+)$/m.exec(message)
  if (missing !== null) {
    const [, imported = '', importer = ''] = missing
    return { file: importer, line: importer === file ? lineOfImport(source, imported) : null }
  }
  for (const [, url = '', line] of stack.matchAll(/(file:\/\/[^\s)]+?):(\d+):\d+/g)) {
    if (!url.includes('/node_modules/') && !url.startsWith(ownCode)) return { file: asPath(url), line: Number(line) }
  }
  return { file, line: name === 'SyntaxError' ? lineOfSyntaxError(source) : null }
}

/** The folder of the server's code. */
const ownCode = new URL('../', import.meta.url).href

function asPath(place: string): string {
  return place.startsWith('file:') ? fileURLToPath(place) : place
}

function lineOfImport(source: string, imported: string): number | null {
  const name = imported.split(/[\\/]/).at(-1) ?? ''
  const index = source.split('\n').findIndex((text) => /\b(?:import|from)\b/.test(text) && text.includes(name))
  return index < 0 ? null : index + 1
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
