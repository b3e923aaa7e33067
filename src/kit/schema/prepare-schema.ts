// Prepares an untrusted JSON Schema for checks. Its size is limited first, before any
// other code looks at it. Then its keywords are checked, its references are resolved inside
// the document (nothing is ever fetched), and its patterns are counted or compiled.

import {
  isObject,
  keywordProblem,
  type Schema,
  schemaListWords,
  schemaMapWords,
  type SchemaObject,
  schemaWords,
} from './keywords.ts'
import { SchemaPatterns } from './schema-patterns.ts'

export const schemaBytesMax = 128 * 1024
const depthMax = 64
/** Values of any kind in the document: keywords, names, list items. */
const nodesMax = 20_000
const referencesMax = 2_000
const patternsMax = 200
/** Instructions of all patterns together. Compiling patterns is the most expensive part of preparing a schema. */
const programsMax = 20_000
/** What compiling all patterns may cost, in the units of `patternCost`. */
const costsMax = 50_000

export type PreparedSchema = {
  readonly root: Schema
  /** The target of each `$ref`, by the schema that contains the reference. */
  readonly targets: ReadonlyMap<SchemaObject, Schema>
  readonly patterns: SchemaPatterns
  /** True if the schema uses `unevaluatedProperties` or `unevaluatedItems`, so checks must track what was evaluated. */
  readonly tracksEvaluated: boolean
}

export type PrepareOptions = {
  /** If a pattern cannot run in linear time: `refuse` the schema, or `ignore` the pattern, which is then compiled at its first use. */
  unusablePatterns: 'refuse' | 'ignore'
}

export type PrepareResult = { ok: true; schema: PreparedSchema } | { ok: false; reason: string }

export function prepareSchema(value: unknown, options: PrepareOptions): PrepareResult {
  if (!isObject(value)) return { ok: false, reason: 'it is not a JSON object' }
  const size = sizeProblem(value)
  if (size !== null) return { ok: false, reason: size }
  const reader = new SchemaReader(options)
  const reason = reader.read(value)
  if (reason !== null) return { ok: false, reason: `the schema cannot be used: ${reason}` }
  const { targets, patterns, tracksEvaluated } = reader
  if (leadsBack(value, targets)) {
    return {
      ok: false,
      reason: 'the schema cannot be used: its references lead back to themselves, so no value can fit',
    }
  }
  return { ok: true, schema: { root: value, targets, patterns, tracksEvaluated } }
}

/** Does not recurse and stops at the first exceeded limit, so that a huge schema cannot break this check. */
function sizeProblem(value: SchemaObject): string | null {
  let nodes = 0
  let chars = 0
  const rest: [value: unknown, depth: number][] = [[value, 1]]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [inner, depth] = next
    nodes += 1
    if (nodes > nodesMax) return `it has more than ${nodesMax} keywords and values`
    if (typeof inner === 'string') chars += inner.length
    if (typeof inner === 'object' && inner !== null) {
      if (depth > depthMax) return `it is nested more than ${depthMax} deep`
      const entries = Object.entries(inner)
      if (nodes + rest.length + entries.length > nodesMax) return `it has more than ${nodesMax} keywords and values`
      for (const [key, child] of entries) {
        chars += key.length
        rest.push([child, depth + 1])
      }
    }
    if (chars > schemaBytesMax) return `it is longer than ${schemaBytesMax / 1024} KiB`
  }
  return null
}

/** `base` is the address that references inside the schema are relative to. */
type SchemaLocation = { schema: SchemaObject; base: string }

/** The address of a root schema that has no `$id`. */
const noAddress = 'json-schema://polylog/root'

class SchemaReader {
  readonly targets = new Map<SchemaObject, Schema>()
  readonly patterns = new SchemaPatterns()
  tracksEvaluated = false
  readonly #options: PrepareOptions
  readonly #open: SchemaLocation[] = []
  readonly #seen = new Set<SchemaObject>()
  /** Address of a document, without its fragment, → the schema. */
  readonly #documents = new Map<string, SchemaObject>()
  /** Address with `#anchor` → the schema. */
  readonly #anchors = new Map<string, SchemaObject>()
  readonly #references: (SchemaLocation & { reference: string })[] = []
  readonly #sources = new Set<string>()
  #programs = 0
  #costs = 0

  constructor(options: PrepareOptions) {
    this.#options = options
  }

  /** The reason why the schema cannot be used, or null. */
  read(root: SchemaObject): string | null {
    this.#documents.set(noAddress, root)
    this.#open.push({ schema: root, base: noAddress })
    for (;;) {
      const location = this.#open.pop()
      if (location !== undefined) {
        const problem = this.#visit(location)
        if (problem !== null) return problem
        continue
      }
      // References are resolved after all reachable schemas were visited. A reference may lead to a schema that was not visited yet.
      const waiting = this.#references.pop()
      if (waiting === undefined) return null
      const problem = this.#resolve(waiting)
      if (problem !== null) return problem
    }
  }

  #visit({ schema, base: outer }: SchemaLocation): string | null {
    if (this.#seen.has(schema)) return null
    this.#seen.add(schema)
    const problem = keywordProblem(schema)
    if (problem !== null) return problem
    const base = this.#register(schema, outer)
    const reference = schema['$ref'] ?? schema['$dynamicRef'] ?? schema['$recursiveRef']
    if (typeof reference === 'string') this.#references.push({ schema, base, reference })
    if (this.#references.length > referencesMax) return `it has more than ${referencesMax} references`
    if (schema['unevaluatedProperties'] !== undefined || schema['unevaluatedItems'] !== undefined)
      this.tracksEvaluated = true

    const patterns = Object.keys((schema['patternProperties'] as SchemaObject | undefined) ?? {})
    if (typeof schema['pattern'] === 'string') patterns.push(schema['pattern'])
    for (const pattern of patterns) {
      const patternProblem = this.#addPattern(pattern)
      if (patternProblem !== null) return patternProblem
    }
    for (const inner of innerSchemas(schema)) this.#open.push({ schema: inner, base })
    return null
  }

  /** Records the ids and anchors of a schema. Returns the address that references inside it are relative to. */
  #register(schema: SchemaObject, outer: string): string {
    let base = outer
    const id = schema['$id']
    if (typeof id === 'string' && id.startsWith('#')) this.#anchors.set(base + id, schema)
    else if (typeof id === 'string' && URL.canParse(id, outer)) {
      base = withoutFragment(new URL(id, outer).href)
      this.#documents.set(base, schema)
    }
    for (const word of ['$anchor', '$dynamicAnchor']) {
      const anchor = schema[word]
      if (typeof anchor === 'string') this.#anchors.set(`${base}#${anchor}`, schema)
    }
    return base
  }

  #resolve({ schema, base, reference }: SchemaLocation & { reference: string }): string | null {
    const missing = `can't resolve reference ${JSON.stringify(reference.slice(0, 200))}`
    if (!URL.canParse(reference, base)) return missing
    const address = new URL(reference, base)
    const document = withoutFragment(address.href)
    const fragment = decodeFragment(address.hash.slice(1))
    const found =
      fragment === '' || fragment.startsWith('/')
        ? resolvePointer(this.#documents.get(document), fragment)
        : this.#anchors.get(`${document}#${fragment}`)
    if (typeof found === 'boolean') this.targets.set(schema, found)
    else if (isObject(found)) {
      this.targets.set(schema, found)
      this.#open.push({ schema: found, base: document })
    } else return missing
    return null
  }

  #addPattern(source: string): string | null {
    if (this.#sources.has(source)) return null
    if (this.#sources.size >= patternsMax) return `it has more than ${patternsMax} patterns`
    this.#sources.add(source)
    if (this.#options.unusablePatterns === 'ignore') return null
    const result = this.patterns.compile(source)
    if (!result.ok) return result.reason
    this.#programs += result.pattern.size
    this.#costs += result.cost
    return this.#programs > programsMax || this.#costs > costsMax ? 'its patterns are too large together' : null
  }
}

/**
 * True if checking any value would never end, as with `{"$ref":"#"}`. Only keywords that apply to the same value in every case
 * are followed: a schema that refers to itself for a part of the value is an ordinary recursive schema.
 */
function leadsBack(root: SchemaObject, targets: ReadonlyMap<SchemaObject, Schema>): boolean {
  const path = new Set<SchemaObject>()
  const cleared = new Set<SchemaObject>()
  const visit = (schema: unknown): boolean => {
    if (!isObject(schema) || cleared.has(schema)) return false
    if (path.has(schema)) return true
    path.add(schema)
    if ([targets.get(schema), ...((schema['allOf'] as unknown[] | undefined) ?? [])].some(visit)) return true
    path.delete(schema)
    cleared.add(schema)
    return false
  }
  return visit(root)
}

function* innerSchemas(schema: SchemaObject): Generator<SchemaObject> {
  for (const word of schemaWords) {
    const inner = schema[word]
    if (isObject(inner)) yield inner
    else if (Array.isArray(inner)) yield* inner.filter(isObject)
  }
  for (const word of schemaListWords) yield* ((schema[word] as unknown[] | undefined) ?? []).filter(isObject)
  for (const word of schemaMapWords)
    yield* Object.values((schema[word] as SchemaObject | undefined) ?? {}).filter(isObject)
}

function resolvePointer(document: unknown, pointer: string): unknown {
  let found = document
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    found = (found as SchemaObject)[key]
  }
  return found
}

function withoutFragment(address: string): string {
  const at = address.indexOf('#')
  return at === -1 ? address : address.slice(0, at)
}

function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}
