// Reads the file that configures the MCP servers, in the format of desktop clients:
// { "mcpServers": { "<name>": { "command", … } or { "url", … } } }. Unknown keys are ignored,
// because other clients may use them. An invalid file stops the start-up; a server that
// cannot be reached is listed with the reason.

import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'

const stringMap = z.record(z.string(), z.string())

const trust = z.strictObject({
  confirm: z.enum(['never', 'always']).optional(),
  effect: z.enum(['read', 'idempotent', 'unsafe']).optional(),
})

/** The operator's settings for a server's tools; they override the tools' own annotations. */
const polylog = trust.extend({ tools: z.record(z.string(), trust).optional() }).optional()

const stdioServer = z.object({
  command: z.string().min(1),
  args: z.array(z.string()).optional(),
  env: stringMap.optional(),
  cwd: z.string().optional(),
  polylog,
  disabled: z.boolean().optional(),
})

const httpServer = z.object({
  url: z.url({ protocol: /^https?$/ }),
  type: z.string().optional(),
  headers: stringMap.optional(),
  polylog,
  disabled: z.boolean().optional(),
})

export type StdioServerConfig = z.infer<typeof stdioServer>
export type HttpServerConfig = z.infer<typeof httpServer>
export type McpServerConfig = StdioServerConfig | HttpServerConfig
export type McpTrust = z.infer<typeof polylog>
export type McpConfig = { mcpServers: Record<string, McpServerConfig> }

export async function readMcpConfig(path: string): Promise<McpConfig> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw invalid(`The file ${path} cannot be read: ${messageOf(error)}.`, error)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // Only the position is reported, because the parser's message quotes the text, which may contain a password.
    const place = /\(line \d+ column \d+\)/.exec(messageOf(error))?.[0] ?? ''
    throw invalid(`The file ${path} is not JSON${place === '' ? '' : ` ${place}`}; check it.`)
  }
  const outline = z.object({ mcpServers: z.unknown() }).safeParse(value)
  if (!outline.success || outline.data.mcpServers === undefined)
    throw invalid(`The file ${path} needs an object "mcpServers".`)
  try {
    return parseMcpServers(outline.data.mcpServers, path)
  } catch (error) {
    throw invalid(messageOf(error), error)
  }
}

/** `where` names the servers in messages. Throws `config_invalid`. */
export function parseMcpServers(value: unknown, where: string): McpConfig {
  const outline = z.record(z.string().min(1), z.looseObject({})).safeParse(value)
  const refuse = (sentence: string) => new AppError('config_invalid', sentence)
  if (!outline.success) throw refuse(`"mcpServers" in ${where} must hold an object for each server.`)

  const mcpServers: Record<string, McpServerConfig> = {}
  for (const [name, entry] of Object.entries(outline.data)) {
    const hasCommand = 'command' in entry
    if (hasCommand === 'url' in entry) {
      throw refuse(`The server "${name}" in ${where} needs either a "command" or a "url".`)
    }
    const parsed = hasCommand ? stdioServer.safeParse(entry) : httpServer.safeParse(entry)
    if (!parsed.success) throw refuse(`The server "${name}" in ${where} is not valid: ${issuesOf(parsed.error)}.`)
    mcpServers[name] = parsed.data
  }
  return { mcpServers }
}

/**
 * Replaces `${NAME}` and `${NAME:-default}` in each value. Throws if a variable has neither a value nor a default, because
 * an incomplete header would only lead to an unclear refusal by the server.
 */
export function withVariables(
  values: Record<string, string>,
  environment: Record<string, string | undefined>,
): Record<string, string> {
  const replaced = Object.entries(values).map(([key, value]): [string, string] => [
    key,
    value.replaceAll(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_whole, name: string, fallback: string | undefined) => {
      const found = environment[name] || fallback
      if (found === undefined) throw new AppError('config_invalid', `The environment variable ${name} is not set.`)
      return found
    }),
  ])
  return Object.fromEntries(replaced)
}

function invalid(message: string, cause?: unknown): AppError {
  return new AppError('config_invalid', `POLYLOG_MCP_CONFIG: ${message}`, { cause })
}

function issuesOf(error: z.ZodError): string {
  return error.issues.map((issue) => [issue.path.join('.'), issue.message].filter(Boolean).join(': ')).join('; ')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
