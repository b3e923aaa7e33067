// A tool of the caller: the request brings its name and its schema, the model may call it, and
// the client executes the call and sends the result. The server never executes it.

import { z } from 'zod'
import { argumentCheck } from '../kit/argument-check.ts'
import { json } from './json-value.ts'

/** The `source` of a call of such a tool. */
export const clientToolSource = 'client'

/** The names that all providers accept. */
export const clientToolName = /^[a-zA-Z0-9_-]{1,64}$/

export const clientToolsMax = 128

/** For all tools of a run together, as JSON. They are part of every prompt. */
export const clientToolsBytesMax = 256 * 1024

export const clientTool = z.object({
  name: z.string().regex(clientToolName, 'must be 1 to 64 letters, digits, "_" or "-"'),
  description: z.string().optional(),
  /** JSON Schema of the arguments (an object). */
  inputSchema: z.record(z.string(), json),
  /** The provider is told to follow the schema exactly. */
  strict: z.boolean().optional(),
})

export type ClientTool = z.infer<typeof clientTool>

/** What is wrong with the tools of a request or of an agent, or null. */
export function clientToolsProblem(tools: readonly ClientTool[]): string | null {
  if (tools.length > clientToolsMax) return `there are ${tools.length} tools; at most ${clientToolsMax} are allowed`
  const bytes = Buffer.byteLength(JSON.stringify(tools))
  if (bytes > clientToolsBytesMax)
    return `the tools have ${bytes} bytes of JSON; at most ${clientToolsBytesMax} are allowed`
  const names = new Set<string>()
  for (const { name, inputSchema } of tools) {
    if (names.has(name)) return `two tools have the name ${JSON.stringify(name)}; rename one`
    names.add(name)
    const problem = inputSchemaProblem(inputSchema)
    if (problem !== null) return `the inputSchema of ${JSON.stringify(name)} cannot be used: ${problem}`
  }
  return null
}

function inputSchemaProblem(inputSchema: ClientTool['inputSchema']): string | null {
  const { type = 'object' } = inputSchema
  if (type !== 'object') return 'the arguments of a tool are an object, so its type must be "object"'
  const check = argumentCheck(inputSchema)
  return check.ok ? null : check.reason
}
