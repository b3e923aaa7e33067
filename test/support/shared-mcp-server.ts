// One server with the fake MCP server `demo` for all tests of a file, and the file in which
// the effects of its tools are counted. The folder of that file is there for other files too.

import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { type Effects, effectsFile, stdioFake } from './fake-mcp.ts'
import { sharedServerProcess, sharedTestServer, type TestServer } from './test-server.ts'

export type SharedMcpServer = {
  server: TestServer
  effects: Effects
  /** A temporary folder of this file, removed after its tests. */
  folder: string
}

/** `settingsIn` adds settings, which may name files in the folder. `mcpServers` adds MCP servers or replaces `demo`. */
export function sharedMcpServer(
  settingsIn: (folder: string) => Record<string, string> = () => ({}),
  mcpServers: (effects: Effects) => Record<string, object> = () => ({}),
  share = sharedTestServer,
): SharedMcpServer {
  const effects = effectsFile()
  const folder = dirname(effects.file)
  const config = join(folder, 'mcp.json')
  const demo = stdioFake({ FAKE_MCP_FILE: effects.file })
  writeFileSync(config, JSON.stringify({ mcpServers: { demo, ...mcpServers(effects) } }))
  const server = share({ POLYLOG_MCP_CONFIG: config, ...settingsIn(folder) })
  after(() => effects.remove())
  return { server, effects, folder }
}

/** The same with a server in a process of its own, for tests of client libraries. */
export function sharedMcpServerProcess(settingsIn?: (folder: string) => Record<string, string>): SharedMcpServer {
  return sharedMcpServer(settingsIn, undefined, sharedServerProcess)
}
