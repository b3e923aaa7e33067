// Reads one agent's folder and checks all of it: the fields of agent.json, every file that it names, its
// templates and its schemas. A definition that was read can be run; the error of one that cannot says which
// field and file is wrong and what to do.

import { createHash } from 'node:crypto'
import { clientToolsProblem } from '../journal/client-tool.ts'
import { defined } from '../kit/defined.ts'
import { schemaProblem } from '../kit/json-schema.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import {
  type AgentCard,
  type AgentDefinition,
  type AgentOperation,
  type AgentSchema,
  agentCard,
  scopeOfReads,
} from './agent-definition.ts'
import type { DefinitionFiles } from './definition-files.ts'
import { templateProblem } from './template.ts'
import { isRecord } from '../kit/is-record.ts'

export class BrokenDefinition extends Error {
  /** What agent.json says about the agent, if at least that could be read. */
  readonly card: AgentCard | null

  constructor(message: string, card: AgentCard | null) {
    super(message)
    this.card = card
  }
}

/** Throws `BrokenDefinition`. */
export async function readDefinition(files: DefinitionFiles): Promise<AgentDefinition> {
  let card: AgentCard | null = null
  try {
    card = checkedCard(await files.card())
    const prompt = await readPrompt(files, 'prompt', card.prompt)
    const operations: AgentOperation[] = []
    if (card.operations === undefined || card.operations.length === 0) {
      operations.push(await readOperation(files, card, '', { ...card, id: null }, prompt))
    }
    for (const [index, own] of (card.operations ?? []).entries()) {
      const field = `operations.${index}`
      if (operations.some(({ id }) => id === own.id)) {
        throw new Error(`agent.json: ${field}.id: another operation has the id ${JSON.stringify(own.id)}; rename one`)
      }
      const ownPrompt =
        own.prompt === undefined
          ? prompt
          : await readPrompt(files, `${field}.prompt`, { ...card.prompt, ...defined(own.prompt) })
      operations.push(await readOperation(files, card, `${field}.`, own, ownPrompt))
    }
    const toolProblem = clientToolsProblem(card.clientTools ?? [])
    if (toolProblem !== null) throw new Error(`agent.json: clientTools: ${toolProblem}`)
    const answerSchema =
      card.answerSchema === undefined ? undefined : await readSchema(files, 'answerSchema', card.answerSchema)
    return { card, ...prompt, ...defined({ answerSchema }), operations }
  } catch (error) {
    throw new BrokenDefinition(error instanceof Error ? error.message : String(error), card)
  }
}

const problemsMax = 3

function checkedCard(value: unknown): AgentCard {
  const parsed = agentCard.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? '' : `${path.join('.')}: `}${message}`,
  )
  const more = problems.length > problemsMax ? `; and ${problems.length - problemsMax} more` : ''
  throw new Error(`agent.json: ${problems.slice(0, problemsMax).join('; ')}${more}`)
}

type Prompt = Pick<AgentDefinition, 'systemTemplate' | 'userTemplate' | 'defaults'>

async function readPrompt(files: DefinitionFiles, field: string, names: AgentCard['prompt']): Promise<Prompt> {
  const defaults = names.defaultsFile === undefined ? {} : await files.json(`${field}.defaultsFile`, names.defaultsFile)
  if (!isRecord(defaults)) {
    throw new Error(`${field}.defaultsFile: the file ${JSON.stringify(names.defaultsFile)} must hold a JSON object`)
  }
  const template = async (name: 'systemTemplate' | 'userTemplate', path: string) => {
    const text = await files.text(`${field}.${name}`, path)
    const problem = templateProblem(text, Object.keys(defaults))
    if (problem !== null) throw new Error(`${field}.${name}: the file ${JSON.stringify(path)}: ${problem}`)
    return text
  }
  return {
    systemTemplate: await template('systemTemplate', names.systemTemplate),
    userTemplate: names.userTemplate === undefined ? '{{{data}}}' : await template('userTemplate', names.userTemplate),
    defaults,
  }
}

type OperationFields = Pick<
  AgentCard,
  'name' | 'description' | 'translations' | 'reads' | 'scope' | 'citations' | 'validation' | 'cache'
> & { id: string | null }

async function readOperation(
  files: DefinitionFiles,
  card: AgentCard,
  field: string,
  own: OperationFields,
  prompt: Prompt,
): Promise<AgentOperation> {
  const schemaFiles = { ...card.validation, ...own.validation }
  const schema = async (name: 'inputSchema' | 'outputSchema' | 'serverFields') => {
    const path = schemaFiles[name]
    return path === undefined ? null : await readSchema(files, `${field}validation.${name}`, path)
  }
  const inputSchema = await schema('inputSchema')
  const outputSchema = await schema('outputSchema')
  const serverFields = await schema('serverFields')
  const reads = own.reads ?? card.reads ?? 'input'
  const citations = own.citations ?? card.citations ?? 'optional'
  const cache = own.cache ?? card.cache
  return {
    id: own.id,
    name: own.name ?? own.id ?? card.id,
    description: own.description ?? '',
    ...defined({ translations: own.translations }),
    ...prompt,
    inputSchema,
    outputSchema,
    dataSchema: withServerFields(outputSchema, serverFields),
    cache:
      cache === undefined
        ? null
        : { ttlMs: cache.ttl === 0 ? null : cache.ttl * 1000, inputFields: cache.sourceHashFields ?? null },
    reads,
    // The scope of the agent belongs to the agent's own `reads`.
    scope: own.scope ?? (own.reads === undefined ? card.scope : undefined) ?? scopeOfReads[reads],
    citations,
    promptVersion: `${card.version}+${digest([prompt, outputSchema, citations, reads])}`,
  }
}

async function readSchema(files: DefinitionFiles, field: string, path: string): Promise<AgentSchema> {
  const shown = `${field}: the file ${JSON.stringify(path)}`
  const schema = await files.json(field, path)
  const problem = schemaProblem(schema)
  if (problem !== null) throw new Error(`${shown} is not a usable JSON Schema: ${problem}`)
  if (!isRecord(schema) || schema['type'] !== 'object') {
    throw new Error(`${shown} must describe a JSON object; write "type": "object" at its top`)
  }
  return schema
}

/** The schema of the whole result. The fields that the server adds are marked `readOnly`, the standard annotation for this. */
function withServerFields(output: AgentSchema | null, server: AgentSchema | null): AgentSchema | null {
  if (server === null) return output
  const marked = Object.entries(objectAt(server, 'properties')).map(([name, property]): [string, unknown] => [
    name,
    isRecord(property) ? { ...property, readOnly: true } : property,
  ])
  return {
    ...(output ?? { type: 'object' }),
    properties: { ...objectAt(output ?? {}, 'properties'), ...Object.fromEntries(marked) },
    required: [...listAt(output ?? {}, 'required'), ...listAt(server, 'required')],
  }
}

function objectAt(schema: AgentSchema, key: string): Record<string, unknown> {
  const value = schema[key]
  return isRecord(value) ? value : {}
}

function listAt(schema: AgentSchema, key: string): unknown[] {
  const value = schema[key]
  return Array.isArray(value) ? value : []
}

function digest(value: unknown): string {
  return createHash('sha256').update(sortedJson(value)).digest('hex').slice(0, 8)
}
