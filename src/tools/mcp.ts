// All MCP servers of a configuration: connected at the same time, each within its
// limit, so that one that hangs costs a start-up ten seconds and no more. A server
// that cannot be had is one listing with the reason; the others are not touched.

import type { Clock } from '../kit/clock.ts'
import type { McpConfig } from './mcp-config.ts'
import { toReason } from './mcp-failure.ts'
import { createMcpServer, type McpLog, type McpServer } from './mcp-server.ts'
import { toTool } from './mcp-tools.ts'
import type { Environment } from './mcp-transport.ts'
import type { ToolEntry } from './tool-registry.ts'

export type McpOptions = {
  clock: Clock
  log: McpLog
  /** Where `${NAME}` in the configuration is looked up. */
  environment: Environment
  connectTimeoutMs?: number
  callTimeoutMs?: number
}

export type McpServers = { entries: ToolEntry[]; close(): Promise<void> }

/** Never throws for a server that cannot be had. */
export async function connectMcpServers(config: McpConfig, options: McpOptions): Promise<McpServers> {
  const callTimeoutMs = options.callTimeoutMs ?? 60_000
  const serverOptions = { ...options, callTimeoutMs, connectTimeoutMs: options.connectTimeoutMs ?? 10_000 }
  const servers: McpServer[] = []

  const entries = await Promise.all(
    Object.entries(config.mcpServers).map(async ([name, serverConfig]): Promise<ToolEntry[]> => {
      if (serverConfig.disabled) return [missing(name, 'It is disabled in the configuration.')]
      const server = createMcpServer(name, serverConfig, serverOptions)
      servers.push(server)
      try {
        const tools = await server.listTools()
        options.log.info({ server: name, tools: tools.length }, 'An MCP server is connected.')
        if (tools.length === 0) return [missing(name, 'It offers no tools.')]
        return tools.map((tool) => ({
          source: `mcp:${name}`,
          tool: toTool(tool, server, callTimeoutMs, serverConfig.polylog),
        }))
      } catch (error) {
        return [missing(name, toReason(error))]
      }
    }),
  )
  return {
    entries: entries.flat(),
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

function missing(name: string, reason: string): ToolEntry {
  // What its tools would do is not known, so the listing says the worst.
  return {
    source: `mcp:${name}`,
    missing: { name, description: `The tools of the MCP server ${name}.`, effect: 'unsafe', reason },
  }
}
