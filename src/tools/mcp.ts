// Connects all configured MCP servers in parallel. The start-up waits for each only for a
// limited time; a server that is slow is connected in the background. A server that cannot
// be connected is listed with the reason and does not affect the others. It is retried, and
// its tools appear when it is connected. When a server changes its list, its tools change.

import { isDeepStrictEqual } from 'node:util'
import type { Clock, Timer } from '../kit/clock.ts'
import type { McpConfig } from './mcp-config.ts'
import { toReason } from './mcp-failure.ts'
import { atMost, connectWaitMs, createMcpServer, type McpLog, type McpServer, type ToolList } from './mcp-server.ts'
import { toTool } from './mcp-tools.ts'
import type { Environment } from './mcp-transport.ts'
import type { ToolEntry } from './tool-registry.ts'

export type McpOptions = {
  clock: Clock
  log: McpLog
  /** The variables for `${NAME}` in the configuration. */
  environment: Environment
  callTimeoutMs?: number
}

export type McpServers = {
  /** The entries that are known now. */
  readonly entries: ToolEntry[]
  /** The listener gets all entries each time those of a server have changed after the start-up. */
  onChange(listener: (entries: ToolEntry[]) => void): void
  /**
   * Resolves when the server of `source` is connected or disabled, or after half a minute. If `source` is absent, it waits
   * only for servers whose first attempt is under way: one that has failed may be down for days.
   */
  awaitSource(source: string | undefined, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** One configured server, connected or not yet. */
type Slot = { name: string; entries: ToolEntry[]; pending: boolean; hasFailed: boolean; timer: Timer | undefined }

const retryMs = 1_000
const retryMaxMs = 60_000
/** How long a recovered run waits for the server of a stored call. */
const awaitMs = 30_000

/** Does not throw if a server cannot be connected. */
export async function connectMcpServers(config: McpConfig, options: McpOptions): Promise<McpServers> {
  const { clock, log } = options
  const callTimeoutMs = options.callTimeoutMs ?? 60_000
  const servers: McpServer[] = []
  const slots: Slot[] = []
  const waiters = new Set<() => void>()
  let listener: ((entries: ToolEntry[]) => void) | undefined
  let closed = false

  const allEntries = () => slots.flatMap((slot) => slot.entries)

  function show(slot: Slot, entries: ToolEntry[]): void {
    if (isDeepStrictEqual(slot.entries, entries)) return
    slot.entries = entries
    listener?.(allEntries())
  }

  function toEntries(slot: Slot, server: McpServer, { tools, invalid, excess }: ToolList): ToolEntry[] {
    if (tools.length === 0 && invalid.length === 0) return [missing(slot.name, 'It offers no tools.')]
    const source = `mcp:${slot.name}` as const
    const trust = config.mcpServers[slot.name]?.polylog
    return [
      ...tools.map((tool): ToolEntry => ({ source, tool: toTool(tool, server, callTimeoutMs, trust) })),
      ...invalid.map(({ name, reason }): ToolEntry => ({
        source,
        missing: { name, description: `A tool of the MCP server ${slot.name}.`, effect: 'unsafe', reason },
      })),
      ...(excess === undefined ? [] : [missing(slot.name, excess)]),
    ]
  }

  async function connect(slot: Slot, server: McpServer, retryDelayMs: number): Promise<void> {
    try {
      const list = await server.listTools()
      log.info({ server: slot.name, tools: list.tools.length }, 'An MCP server is connected.')
      slot.pending = false
      show(slot, toEntries(slot, server, list))
      for (const wake of waiters) wake()
    } catch (error) {
      slot.hasFailed = true
      show(slot, [missing(slot.name, toReason(error))])
      for (const wake of waiters) wake()
      if (closed) return
      const nextDelayMs = Math.min(retryDelayMs * 2, retryMaxMs)
      slot.timer = clock.after(retryDelayMs, () => void connect(slot, server, nextDelayMs))
    }
  }

  await Promise.all(
    Object.entries(config.mcpServers).map(async ([name, serverConfig]) => {
      const slot: Slot = { name, entries: [], pending: true, hasFailed: false, timer: undefined }
      slots.push(slot)
      if (serverConfig.disabled) {
        slot.pending = false
        slot.entries = [missing(name, 'It is disabled in the configuration.')]
        return
      }
      const server: McpServer = createMcpServer(name, serverConfig, {
        ...options,
        callTimeoutMs,
        onToolsChanged: (list) => show(slot, toEntries(slot, server, list)),
      })
      servers.push(server)
      await atMost(clock, connectWaitMs, connect(slot, server, retryMs))
      if (slot.entries.length > 0) return
      const reason = `It did not answer within ${connectWaitMs / 1000} s.`
      log.warn({ server: name }, 'An MCP server is slow. Its tools appear when it is connected.')
      slot.entries = [missing(name, reason)]
    }),
  )

  return {
    get entries() {
      return allEntries()
    },
    onChange(changed) {
      listener = changed
    },
    awaitSource(source, signal) {
      const isKnown = () =>
        !slots.some((slot) => slot.pending && (source === undefined ? !slot.hasFailed : source === `mcp:${slot.name}`))
      return new Promise<void>((resolve) => {
        const look = () => {
          if (isKnown()) done()
        }
        const done = () => {
          timer.cancel()
          waiters.delete(look)
          signal.removeEventListener('abort', done)
          resolve()
        }
        const timer = clock.after(awaitMs, done)
        waiters.add(look)
        signal.addEventListener('abort', done, { once: true })
        if (signal.aborted || closed) done()
        else look()
      })
    },
    close: async () => {
      closed = true
      for (const slot of slots) slot.timer?.cancel()
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

function missing(name: string, reason: string): ToolEntry {
  // The effect of its tools is unknown, so the listing assumes the worst.
  return {
    source: `mcp:${name}`,
    missing: { name, description: `The tools of the MCP server ${name}.`, effect: 'unsafe', reason },
  }
}
