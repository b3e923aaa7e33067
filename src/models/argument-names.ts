// The names of arguments as Anthropic accepts them: 1 to 64 letters, digits, `_`, `.` and `-`. One property with another
// name, such as the `$filter` of OData, makes it refuse the whole request. So these properties get another name in the
// schemas and in the calls that are sent, and their own name again in the calls that the model makes.

import { createHash } from 'node:crypto'
import type { JsonValue } from '../journal/event.ts'
import { isRecord } from '../kit/is-record.ts'
import type { Model, ModelMessage, ModelPart, ModelRequest } from './model.ts'

type Schema = Record<string, unknown>

/** The properties of one tool that are sent under another name, which no other property of the tool has, at any depth. */
type Renaming = {
  /** With the names that are sent. */
  schema: Schema
  sentByOwn: ReadonlyMap<string, string>
  ownBySent: ReadonlyMap<string, string>
}

const charsMax = 64
const accepted = /^[\w.-]{1,64}$/

export function isPlainArgumentName(name: string): boolean {
  return accepted.test(name)
}

export function withPlainArguments(model: Model): Model {
  return {
    async *stream(request, signal) {
      const renamings = new Map(
        request.tools.flatMap(({ name, inputSchema }) => {
          const renaming = renamingOf(inputSchema)
          return renaming === null ? [] : [[name, renaming] as const]
        }),
      )
      if (renamings.size === 0) yield* model.stream(request, signal)
      else
        for await (const parts of model.stream(renamedRequest(request, renamings), signal))
          yield parts.map((part) => withOwnNames(part, renamings))
    },
  }
}

function renamedRequest(request: ModelRequest, renamings: ReadonlyMap<string, Renaming>): ModelRequest {
  return {
    ...request,
    tools: request.tools.map((tool) => ({
      ...tool,
      inputSchema: renamings.get(tool.name)?.schema ?? tool.inputSchema,
    })),
    messages: request.messages.map((message): ModelMessage => {
      if (message.role !== 'assistant' || message.toolCalls === undefined) return message
      const toolCalls = message.toolCalls.map((call) => {
        const renaming = renamings.get(call.name)
        return renaming === undefined ? call : { ...call, input: renamedKeys(call.input, renaming.sentByOwn) }
      })
      return { ...message, toolCalls }
    }),
  }
}

function withOwnNames(part: ModelPart, renamings: ReadonlyMap<string, Renaming>): ModelPart {
  const renaming = part.type === 'tool-call' ? renamings.get(part.name) : undefined
  if (part.type !== 'tool-call' || part.input === undefined || renaming === undefined) return part
  const input = renamedKeys(part.input, renaming.ownBySent)
  return { ...part, input, rawInput: JSON.stringify(input) }
}

function renamedKeys(value: JsonValue, names: ReadonlyMap<string, string>): JsonValue {
  if (Array.isArray(value)) return value.map((item) => renamedKeys(item, names))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [names.get(key) ?? key, renamedKeys(item, names)]),
  )
}

/** Tools keep their schema, and each step of each run sends them all. Null if all names are fine. */
const known = new WeakMap<Schema, Renaming | null>()

function renamingOf(schema: Schema): Renaming | null {
  let renaming = known.get(schema)
  if (renaming === undefined) {
    renaming = newRenaming(schema)
    known.set(schema, renaming)
  }
  return renaming
}

function newRenaming(schema: Schema): Renaming | null {
  const names = new Set<string>()
  renamedSchema(schema, (name) => {
    names.add(name)
    return name
  })
  const sentByOwn = new Map<string, string>()
  const ownBySent = new Map<string, string>()
  for (const name of names) {
    if (isPlainArgumentName(name)) continue
    const sent = plainName(name, (wanted) => names.has(wanted) || ownBySent.has(wanted))
    sentByOwn.set(name, sent)
    ownBySent.set(sent, name)
  }
  if (sentByOwn.size === 0) return null
  return { schema: renamedSchema(schema, (name) => sentByOwn.get(name) ?? name), sentByOwn, ownBySent }
}

function plainName(name: string, isTaken: (wanted: string) => boolean): string {
  const clean = name.replaceAll(/[^\w.-]/gu, '_')
  let plain = clean
  for (let tries = 0; !isPlainArgumentName(plain) || isTaken(plain); tries += 1) {
    const digest = createHash('sha256').update(`${tries} ${name}`).digest('hex').slice(0, 8)
    plain = `${clean.slice(0, charsMax - digest.length - 1)}_${digest}`
  }
  return plain
}

type Rename = (name: string) => string

/** Keywords whose value is a schema or a list of schemas. */
const schemaWords = new Set(
  (
    'items prefixItems additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames ' +
    'anyOf oneOf allOf not if then else'
  ).split(' '),
)
/** Keywords whose value has a schema, or a list of names, for each name: of a definition or a pattern, or of a property. */
const definitionWords = new Set(['$defs', 'definitions', 'patternProperties'])
const propertyWords = new Set(['properties', 'dependentSchemas', 'dependentRequired', 'dependencies'])

/** A copy with other names of properties, at any depth. What is no schema, such as a default, stays as it is. */
function renamedSchema(schema: Schema, rename: Rename): Schema {
  return mapEntries(schema, (word, value) => {
    if (schemaWords.has(word) || word === 'required') return [word, renamedItem(value, rename)]
    if (word === '$ref' && typeof value === 'string') return [word, renamedReference(value, rename)]
    if (!isRecord(value)) return [word, value]
    if (definitionWords.has(word)) return [word, mapEntries(value, (name, item) => [name, renamedItem(item, rename)])]
    if (!propertyWords.has(word)) return [word, value]
    return [word, mapEntries(value, (name, item) => renamedProperty(name, renamedItem(item, rename), rename))]
  })
}

/** A schema, the name of a property, or a list of them. */
function renamedItem(item: unknown, rename: Rename): unknown {
  if (typeof item === 'string') return rename(item)
  if (Array.isArray(item)) return item.map((one) => renamedItem(one, rename))
  return isRecord(item) ? renamedSchema(item, rename) : item
}

/** The description tells the model the name that the texts of the tool use. */
function renamedProperty(name: string, schema: unknown, rename: Rename): [string, unknown] {
  const sent = rename(name)
  if (sent === name || !isRecord(schema)) return [sent, schema]
  const { description } = schema
  const told = `Stands for ${JSON.stringify(name)}.`
  return [sent, { ...schema, description: typeof description === 'string' ? `${told} ${description}` : told }]
}

/** A reference may lead to a property, as in `#/properties/$filter`. */
function renamedReference(reference: string, rename: Rename): string {
  const parts = reference.split('/')
  const renamed = parts.map((part, at) => {
    if (parts[at - 1] !== 'properties') return part
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const sent = rename(name)
    return sent === name ? part : sent
  })
  return renamed.join('/')
}

function mapEntries(given: Schema, change: (key: string, value: unknown) => [string, unknown]): Schema {
  return Object.fromEntries(Object.entries(given).map(([key, value]) => change(key, value)))
}
