// The configuration of an MCP server whose tool `take_picture` returns files, and whose tool `query_records` has odd arguments.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Settings with which a test server has these tools. */
export function withPictureTool(): { POLYLOG_MCP_CONFIG: string } {
  const file = join(mkdtempSync(join(tmpdir(), 'polylog-pictures-')), 'mcp.json')
  const script = join(import.meta.dirname, '../fakes/mcp-picture-server.ts')
  writeFileSync(file, JSON.stringify({ mcpServers: { pictures: { command: process.execPath, args: [script] } } }))
  return { POLYLOG_MCP_CONFIG: file }
}
