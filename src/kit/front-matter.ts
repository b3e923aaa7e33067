// Reads the YAML block at the top of a Markdown file. The file may come from an untrusted
// package, so size, nesting and aliases are bounded before and during parsing.

import { isMap, isScalar, parseDocument } from 'yaml'

export type FrontMatter = {
  /** Keys of the top level, in their order. */
  fields: ReadonlyMap<string, unknown>
  /** The Markdown text after the block. */
  text: string
}

/** Ten times what a long description needs. The parser needs a few milliseconds for it. */
const blockCharsMax = 8 * 1024
/** Front matter needs no aliases. A few are harmless; thousands are an attack. */
const aliasesMax = 20
/** The parser recurses, and slows down with the depth. */
const bracketsMax = 64
const nestedIndicators = /(?:[-?:][ \t]+){17}/

const block = /^\uFEFF?---[ \t]*\r?\n((?:[^\r\n]*\r?\n)*?)---[ \t]*(?:\r?\n|$)/

/** Throws an Error whose message names `file` and what is wrong with its front matter. */
export function readFrontMatter(source: string, file: string): FrontMatter {
  const match = block.exec(source.slice(0, blockCharsMax + 16))
  if (match === null) {
    const begins = /^\uFEFF?---[ \t]*\r?\n/.test(source)
    throw new Error(
      begins
        ? `${file}: the front matter is not closed by a line --- within ${blockCharsMax / 1024} KiB`
        : `${file} does not begin with a front matter (---, name, description, ---)`,
    )
  }
  return { fields: fieldsOf(quotePlainColons(match[1] ?? ''), file), text: source.slice(match[0].length) }
}

/**
 * Many published skills write `description: Use when: …`, which is not valid YAML. A one-line value that begins with a letter
 * or digit is text, so it is quoted if it contains a colon; all other lines are left to the parser.
 */
function quotePlainColons(yaml: string): string {
  return yaml
    .split('\n')
    .map((line) => {
      const match = /^([A-Za-z_][\w-]*):[ \t]+([\p{L}\p{N}].*?)\r?$/u.exec(line)
      const [, key, value = ''] = match ?? []
      return key !== undefined && /:\s/.test(value) ? `${key}: ${JSON.stringify(value.trimEnd())}` : line
    })
    .join('\n')
}

function fieldsOf(yaml: string, file: string): ReadonlyMap<string, unknown> {
  if ((yaml.match(/[[{]/g) ?? []).length > bracketsMax || nestedIndicators.test(yaml)) {
    throw new Error(`${file}: the front matter is nested too deeply`)
  }
  // Duplicate keys of the top level are found below, because the parser's own check takes quadratic time.
  const document = parseDocument(yaml, { uniqueKeys: false, logLevel: 'silent', prettyErrors: false })
  const [error] = document.errors
  if (error !== undefined) {
    const line = yaml.slice(0, error.pos[0]).split('\n').length + 1
    throw new Error(`${file}: the front matter is not valid YAML: ${error.message} (line ${line})`)
  }
  if (document.contents === null) return new Map()
  if (!isMap(document.contents)) throw new Error(`${file}: the front matter has no "key: value" lines`)
  let values: unknown
  try {
    values = document.toJS({ mapAsMap: true, maxAliasCount: aliasesMax })
  } catch (cause) {
    throw new Error(`${file}: the front matter has aliases that cannot be resolved, or too many of them`, { cause })
  }
  const seen = new Set<string>()
  for (const { key } of document.contents.items) {
    const name = isScalar(key) ? String(key.value) : ''
    if (seen.has(name)) throw new Error(`${file}: the front matter has the key ${JSON.stringify(name)} twice`)
    seen.add(name)
  }
  return values as ReadonlyMap<string, unknown>
}

/** The text of a field, empty if it is missing. Throws if it is a list, a map or another value. */
export function frontMatterText(fields: ReadonlyMap<string, unknown>, name: string, file: string): string {
  const value = fields.get(name)
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value.trim()
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new Error(`${file}: ${name} in the front matter must be text`)
}
