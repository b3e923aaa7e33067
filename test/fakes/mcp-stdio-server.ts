// An MCP server over stdio. FAKE_MCP_MODE: `modern` refuses the older handshake,
// `hang` reads and never answers, `fail` complains on stderr and ends.

import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createDemoServer } from './mcp-demo-tools.ts'

const mode = process.env.FAKE_MCP_MODE

if (mode === 'fail') {
  process.stderr.write('cannot find the license\n')
  process.exitCode = 3
} else if (mode === 'hang') {
  process.stdin.resume()
} else {
  serveStdio(createDemoServer, { legacy: mode === 'modern' ? 'reject' : 'serve' })
}
