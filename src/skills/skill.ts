// A skill: instructions in SKILL.md, with a front matter that names it, and an optional runner
// card in assets/runner.json. The same code reads it from a folder and from an uploaded
// package. A skill may only refer to files of its own package.

import { z } from 'zod'
import type { JsonValue } from '../journal/event.ts'
import { readFrontMatter, frontMatterText } from '../kit/front-matter.ts'
import { schemaBytesMax, schemaProblem } from '../kit/json-schema.ts'
import { isReadable, type SkillFile } from './skill-files.ts'

export const executionModes = ['auto', 'interactive'] as const
export type ExecutionMode = (typeof executionModes)[number]

export type JsonSchema = Record<string, JsonValue>

export type Skill = {
  id: string
  name: string
  description: string
  version: string | undefined
  /** SKILL.md without its front matter. */
  text: string
  modes: ExecutionMode[]
  /** Null means all engines. */
  engines: string[] | null
  unsupportedEngines: string[]
  schemas: { input: JsonSchema | undefined; parameter: JsonSchema | undefined; output: JsonSchema | undefined }
  /** The input properties whose values are uploaded files. */
  fileInputs: { name: string; required: boolean }[]
  /** The files that a model may read while it runs the skill; the instructions, the card and the schemas are not included. */
  files: SkillFile[]
}

/** Reads a file of the package as text; undefined if there is no such file. */
export type PackageReader = (path: string) => Promise<string | undefined>

const engineNames = z.array(z.string().min(1).max(100)).max(50)
const schemaPath = z.string().min(1).max(300)

export const runnerCard = z.object({
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, 'must have letters, digits, _ - and . only'),
  version: z.string().max(100).optional(),
  name: z.string().max(200).optional(),
  execution_modes: z.array(z.enum(executionModes)).min(1),
  engines: engineNames.min(1).optional(),
  unsupported_engines: engineNames.optional(),
  schemas: z
    .object({ input: schemaPath.optional(), parameter: schemaPath.optional(), output: schemaPath.optional() })
    .optional(),
})

const textBytesMax = 256 * 1024
/** A card has a few lines. Parsing and checking a card of megabytes would block the server. */
const cardBytesMax = 64 * 1024

/** Throws an Error whose message says what is wrong with the package. `strict` applies the rules for uploaded packages. */
export async function readSkill(
  read: PackageReader,
  { folder, strict, files = [] }: { folder: string; strict: boolean; files?: readonly SkillFile[] },
): Promise<Skill> {
  const source = await read('SKILL.md')
  if (source === undefined) throw new Error('there is no SKILL.md')
  if (source.length > textBytesMax) throw new Error('SKILL.md is longer than 256 KiB')
  const { fields, text } = readFrontMatter(source, 'SKILL.md')
  const name = frontMatterText(fields, 'name', 'SKILL.md')
  if (name === '') throw new Error('the front matter of SKILL.md has no name')
  const description = frontMatterText(fields, 'description', 'SKILL.md')
  if (text.trim() === '') throw new Error('SKILL.md has no instructions')

  const cardText = await read('assets/runner.json')
  if (cardText === undefined && strict) throw new Error('there is no assets/runner.json')
  const card = cardText === undefined ? { id: name, execution_modes: [...executionModes] } : parseCard(cardText)
  if (card.id !== folder)
    throw new Error(`its folder is ${folder} and the id of its runner card ${card.id}; they must be the same`)
  if (strict && name !== card.id)
    throw new Error(`the name in SKILL.md is ${name} and the id of the runner card ${card.id}; they must be the same`)

  const engines = card.engines ?? null
  const unsupportedEngines = card.unsupported_engines ?? []
  if (engines !== null) {
    const both = engines.filter((engine) => unsupportedEngines.includes(engine))
    if (both.length > 0) throw new Error(`${both.join(', ')} is in engines and in unsupported_engines`)
  }
  const schema = async (kind: 'input' | 'parameter' | 'output') => {
    const path = card.schemas?.[kind]
    if (path === undefined) {
      if (strict) throw new Error(`runner.json names no ${kind} schema`)
      return undefined
    }
    return await readSchema(read, kind, path)
  }
  const schemas = { input: await schema('input'), parameter: await schema('parameter'), output: await schema('output') }
  const apart = new Set(
    ['SKILL.md', 'assets/runner.json', ...Object.values(card.schemas ?? {})].filter((path) => path !== undefined),
  )
  return {
    id: card.id,
    name: card.name ?? name,
    description,
    version: card.version,
    text: text.trim(),
    modes: [...new Set(card.execution_modes)],
    engines,
    unsupportedEngines,
    schemas,
    fileInputs: fileInputsOf(schemas.input),
    files: files.filter(({ path, size }) => isReadable(path, size, apart)),
  }
}

export function supportsEngine(skill: Skill, engine: string): boolean {
  return (skill.engines === null || skill.engines.includes(engine)) && !skill.unsupportedEngines.includes(engine)
}

type Card = z.infer<typeof runnerCard>

function parseCard(text: string): Card {
  if (text.length > cardBytesMax) throw new Error('assets/runner.json is longer than 64 KiB')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('assets/runner.json is not valid JSON')
  }
  const parsed = runnerCard.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new Error(`assets/runner.json: ${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not valid'}`)
}

async function readSchema(read: PackageReader, kind: string, path: string): Promise<JsonSchema> {
  const parts = path.split('/')
  if (/[\\\0]|^[A-Za-z]:/.test(path) || parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new Error(`the ${kind} schema ${JSON.stringify(path)} is not a path inside the package`)
  }
  const text = await read(path)
  if (text === undefined) throw new Error(`there is no ${path}, which runner.json names as the ${kind} schema`)
  if (text.length > schemaBytesMax) throw new Error(`${path} is longer than 128 KiB`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(`${path} is not valid JSON`)
  }
  const problem = schemaProblem(value)
  if (problem !== null) throw new Error(`${path} is not a JSON Schema that can be used: ${problem}`)
  return value as JsonSchema
}

function fileInputsOf(schema: JsonSchema | undefined): Skill['fileInputs'] {
  const properties = schema?.['properties']
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties)) return []
  const required = Array.isArray(schema?.['required']) ? schema['required'] : []
  return Object.entries(properties).flatMap(([name, property]) => {
    const source = (property as Record<string, JsonValue> | null)?.['x-input-source']
    return source === 'file' ? [{ name, required: required.includes(name) }] : []
  })
}
