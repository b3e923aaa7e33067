// Checks the tools of a configuration at the start. Plain JavaScript can pass anything, so
// nothing is believed; all problems are reported together, each with the place where the
// tool was defined and what to do.

import { z } from 'zod'
import { nearestName } from '../kit/nearest-name.ts'
import { isStandardSchema } from '../kit/standard-schema.ts'
import { messageOf } from '../kit/thrown-message.ts'
import { argumentCheck } from '../kit/argument-check.ts'
import { type CodeToolOptions, toCodeTool } from './code-tool.ts'
import { placeOfTool, type ToolDefinition } from './define-tool.ts'
import type { ToolEntry } from './tool-registry.ts'

const effects = ['read', 'idempotent', 'unsafe']
const descriptionCharsMax = 20_000
/** The longest wait that a Node timer can hold. */
const timerMax = 0x7fffffff
const toolsMax = 500

const fields = ['name', 'description', 'input', 'effect', 'confirm', 'timeoutMs', 'describe', 'execute']

export type ToolProblem = { place: string | null; message: string }

/** `taken`: the entries of the built-in tools, whose names a tool in code must not use. */
export function checkCodeTools(
  given: readonly unknown[],
  taken: readonly ToolEntry[],
  options: CodeToolOptions,
): { entries: ToolEntry[]; problems: ToolProblem[] } {
  const problems: ToolProblem[] = []
  const entries: ToolEntry[] = []
  const names = new Map<string, string>(
    taken.map((entry) => ['tool' in entry ? entry.tool.name : entry.missing.name, 'a built-in tool']),
  )
  if (given.length > toolsMax) {
    problems.push({ place: null, message: `There are ${given.length} tools; at most ${toolsMax} can be used.` })
    return { entries, problems }
  }
  given.forEach((item, index) => {
    const place = typeof item === 'object' && item !== null ? placeOfTool(item) : null
    const { who, complaints, schema } = complaintsOf(item, index)
    const name = (item as Partial<ToolDefinition> | null)?.name
    const holder = typeof name === 'string' ? names.get(name) : undefined
    if (holder !== undefined) complaints.push(`is called like ${holder}; choose another name`)
    for (const complaint of complaints)
      problems.push({ place, message: `${who} ${complaint}${complaint.endsWith('?') ? '' : '.'}` })
    if (typeof name === 'string') names.set(name, names.get(name) ?? 'another tool of the configuration')
    if (complaints.length > 0 || schema === undefined) return
    entries.push({ source: 'config', tool: toCodeTool(item as ToolDefinition, schema, options) })
  })
  return { entries, problems }
}

type Checked = { who: string; complaints: string[]; schema?: Record<string, unknown> }

function complaintsOf(item: unknown, index: number): Checked {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return { who: `Entry ${index + 1} of tools`, complaints: ['is not a tool; write defineTool({ … })'] }
  }
  const tool = item as Record<string, unknown>
  const { name, description, input, effect, confirm, timeoutMs, describe, execute } = tool
  const complaints: string[] = []
  const isNamed = typeof name === 'string' && name !== ''
  const who = isNamed ? `The tool ${JSON.stringify(name.slice(0, 80))}` : `Entry ${index + 1} of tools`
  for (const key of Object.keys(tool)) {
    if (fields.includes(key)) continue
    const meant = nearestName(key, fields)
    complaints.push(
      `has the unknown field ${key}; ${meant === undefined ? `known are ${fields.join(', ')}` : `did you mean ${meant}?`}`,
    )
  }
  if (!isNamed || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    complaints.push('needs a name of 1 to 64 letters, digits, _ and -, which is what all model providers accept')
  }
  if (typeof description !== 'string' || description.trim() === '' || description.length > descriptionCharsMax) {
    complaints.push(`needs a description of at most ${descriptionCharsMax} characters; the model reads it`)
  }
  if (!effects.includes(effect as string)) complaints.push(`needs an effect: ${effects.join(', ')}`)
  if (confirm !== undefined && confirm !== 'always' && confirm !== 'never' && typeof confirm !== 'function') {
    complaints.push(`has a confirm that is not 'always', 'never' or a function that returns true or false`)
  }
  if (describe !== undefined && typeof describe !== 'function') complaints.push('has a describe that is not a function')
  if (typeof execute !== 'function') complaints.push('needs a function execute(input, call)')
  if (
    timeoutMs !== undefined &&
    !(Number.isInteger(timeoutMs) && Number(timeoutMs) >= 1 && Number(timeoutMs) <= timerMax)
  ) {
    complaints.push(`has a timeoutMs that is not a whole number from 1 to ${timerMax}`)
  }
  const schema = inputSchemaOf(input)
  if (typeof schema === 'string') return { who, complaints: [...complaints, schema] }
  return { who, complaints, schema }
}

/** The JSON Schema of the arguments as a copy, or a complaint. */
function inputSchemaOf(input: unknown): Record<string, unknown> | string {
  let schema: unknown
  try {
    schema = isStandardSchema(input) ? jsonSchemaOf(input) : JSON.parse(JSON.stringify(input ?? null))
  } catch (error) {
    return `has an input that cannot be written as JSON Schema (${messageOf(error)}); use types that JSON has`
  }
  if (schema === undefined) {
    return 'has an input whose library cannot write it as JSON Schema; use zod 4.2 or later, or plain JSON Schema'
  }
  if (typeof schema !== 'object' || schema === null || (schema as { type?: unknown }).type !== 'object') {
    return `needs an input: z.object({ … }), or a JSON Schema with type: 'object'`
  }
  const { $schema: _draft, ...plain } = schema as Record<string, unknown>
  const check = argumentCheck(plain)
  return check.ok ? plain : `has an input that cannot be used: ${check.reason}`
}

function jsonSchemaOf(input: ToolDefinition['input'] & { '~standard': object }): unknown {
  const { jsonSchema } = input['~standard'] as { jsonSchema?: { input(options: object): unknown } }
  if (jsonSchema !== undefined) return jsonSchema.input({ target: 'draft-2020-12' })
  // Zod 4.0 and 4.1 have no such method, and their schemas can be read by ours.
  return '_zod' in input ? z.toJSONSchema(input as unknown as z.ZodType, { io: 'input' }) : undefined
}
