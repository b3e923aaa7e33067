// Configurations of the fake MCP servers, and a file in which their effects are
// counted.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StdioServerConfig } from '../../src/tools/mcp-config.ts'
import { compileCache } from './polylog-process.ts'

const stdioServer = fileURLToPath(new URL('../fakes/mcp-stdio-server.ts', import.meta.url))

/** For `mcpServers`: a fake that is started as a child process. */
export function stdioFake(env: Record<string, string> = {}): StdioServerConfig {
  return { command: process.execPath, args: [stdioServer], env: { ...compileCache(), ...env } }
}

export type Effects = {
  file: string
  lines(): string[]
  remove(): void
}

export function effectsFile(): Effects {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-mcp-'))
  const file = join(folder, 'effects')
  return {
    file,
    lines() {
      try {
        return readFileSync(file, 'utf8').split('\n').filter(Boolean)
      } catch {
        return [] // nothing has happened so far
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
