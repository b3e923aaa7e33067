// Turns a tool of an MCP server into one of ours: its annotations decide its effect, and its
// result is translated for the model. A tool without annotations is `unsafe` and needs
// confirmation every time. The operator's configuration overrides the annotations.

import { isDeepStrictEqual } from 'node:util'
import type { CallToolResult, Tool as McpTool } from '@modelcontextprotocol/client'
import type { JsonValue } from '../journal/event.ts'
import { fileLabel } from '../journal/message-parts.ts'
import { isValueDeeperThan, valuesIn, valuesInValue } from '../kit/json-depth.ts'
import { excerpt, quoted, withArguments } from './excerpt.ts'
import type { McpTrust } from './mcp-config.ts'
import type { McpServer } from './mcp-server.ts'
import { resultValuesMax, toPlainJson } from './plain-json.ts'
import type { Tool, ToolFile, ToolResult } from './tool.ts'

/** Descriptions are cut, because they are part of every prompt. */
const descriptionCharsMax = 20_000
/** Deeper structures could overflow the stack of recursive code such as JSON.stringify. */
const structureDepthMax = 100

export function toTool(definition: McpTool, server: McpServer, timeoutMs: number, trust?: McpTrust): Tool {
  const { readOnlyHint, idempotentHint, title: annotatedTitle } = definition.annotations ?? {}
  const title = definition.title ?? annotatedTitle ?? definition.name
  const claimed = readOnlyHint === true ? 'read' : idempotentHint === true ? 'idempotent' : 'unsafe'
  const own = trust?.tools?.[definition.name]
  const effect = own?.effect ?? trust?.effect ?? claimed
  return {
    name: definition.name,
    description: (definition.description ?? title).slice(0, descriptionCharsMax),
    effect,
    confirm: own?.confirm ?? trust?.confirm ?? (effect === 'read' ? 'never' : 'always'),
    howToAllow: `Set "polylog": {"tools": {${JSON.stringify(definition.name)}: {"confirm": "never"}}} for the MCP server ${server.name} in POLYLOG_MCP_CONFIG.`,
    inputSchema: definition.inputSchema,
    timeoutMs,
    // Longer outputs are cut for the model and stored whole beside the journal.
    outputCharsMax: 100_000,
    describe: (input) => `Use ${quoted(title, 60)} of ${server.name}${withArguments(input)}`,
    run: async (input, context) => toToolResult(await server.call(definition, input, context), title),
  }
}

export function toToolResult(answer: CallToolResult, title: string): ToolResult {
  const files = answer.content.flatMap((part) => fileOf(part) ?? [])
  return { ...withoutFiles(answer, title), ...(files.length === 0 ? {} : { files }) }
}

type ContentBlock = CallToolResult['content'][number]

/** Undefined for blocks that have no bytes. A link is never followed. */
function fileOf(part: ContentBlock): ToolFile | undefined {
  if (part.type === 'image' || part.type === 'audio')
    return { bytes: Buffer.from(part.data, 'base64'), mediaType: part.mimeType }
  if (part.type !== 'resource' || !('blob' in part.resource)) return undefined
  const { uri, mimeType, blob } = part.resource
  return { bytes: Buffer.from(blob, 'base64'), mediaType: mimeType, name: nameOf(uri) }
}

/** The last part of the path of a URI. */
function nameOf(uri: string): string | undefined {
  const last = uri.split(/[?#]/, 1)[0]?.split('/').at(-1)
  return last === undefined || last === '' ? undefined : last
}

function withoutFiles(answer: CallToolResult, title: string): ToolResult {
  const ok = answer.isError !== true
  const text = answer.content.map(partText).join('\n')
  const summary = excerpt(text, 200) || (ok ? `${title} is done.` : `${title} reported an error without saying which.`)
  if (answer.structuredContent === undefined) return { ok, output: text, summary }
  const excess = excessOf(answer.structuredContent)
  if (excess !== undefined) {
    const note = `[structured content is left out: it ${excess}]`
    return { ok, output: text === '' ? note : `${text}\n${note}`, summary }
  }

  // The protocol asks servers to repeat structured content as text for old clients; the model should get it only once.
  // A number such as 1e999 is read as infinite, which JSON cannot hold.
  const structuredContent = toPlainJson(answer.structuredContent)
  const output = isJsonOf(text, structuredContent) || text === '' ? { structuredContent } : { text, structuredContent }
  return { ok, output, summary }
}

/** Says which limit the value exceeds, if any. The values are counted first, because finding the depth walks all of them. */
function excessOf(value: unknown): string | undefined {
  if (valuesInValue(value, resultValuesMax) > resultValuesMax) return `has more than ${resultValuesMax} values`
  if (isValueDeeperThan(value, structureDepthMax)) return `is nested more than ${structureDepthMax} deep`
  return undefined
}

function partText(part: ContentBlock): string {
  if (part.type === 'text') return part.text
  if (part.type === 'image' || part.type === 'audio')
    return fileLabel({ mediaType: part.mimeType, size: base64Bytes(part.data) })
  if (part.type === 'resource_link') return `[link: ${part.name}, ${part.uri}]`
  if ('text' in part.resource) return `[resource: ${part.resource.uri}]\n${part.resource.text}`
  const { uri, mimeType = 'application/octet-stream', blob } = part.resource
  const name = nameOf(uri)
  return fileLabel({ mediaType: mimeType, size: base64Bytes(blob), ...(name === undefined ? {} : { name }) })
}

function base64Bytes(data: string): number {
  return Buffer.byteLength(data, 'base64')
}

function isJsonOf(text: string, value: JsonValue): boolean {
  if (valuesIn(text, resultValuesMax) > resultValuesMax) return false
  try {
    return isDeepStrictEqual(JSON.parse(text), value)
  } catch {
    return false
  }
}
