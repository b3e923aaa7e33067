// What servers under torture need from outside: a model provider that answers the same again, an MCP
// server that counts what its tools did, and a skill. The settings lead a server to them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { skillsFolder } from '../support/jobs.ts'
import { spawnFake } from '../support/spawn-fake.ts'
import { readJson } from './checks.ts'

/** How often each unsafe call (`pay`) and each idempotent call (`stamp`) was executed, by its argument. */
export type Ledger = { paid: Record<string, number>; stamped: Record<string, number> }

export type OutsideWorld = {
  readonly settings: Record<string, string>
  /** A temporary folder, removed at the end. */
  readonly folder: string
  ledger(): Promise<Ledger>
  dispose(): Promise<void>
}

export async function startOutsideWorld(): Promise<OutsideWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-torture-'))
  const provider = await spawnFake('repeatable-provider.ts')
  const ledger = await spawnFake('ledger-server.ts')
  const skills = skillsFolder()
  const config = {
    url: `${ledger.baseUrl}/mcp`,
    polylog: { tools: { stamp: { effect: 'idempotent', confirm: 'never' } } },
  }
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { ledger: config } }))
  return {
    folder,
    settings: {
      OPENAI_API_KEY: 'fake-key',
      OPENAI_BASE_URL: `${provider.baseUrl}/v1`,
      POLYLOG_MODEL: 'openai/repeatable',
      POLYLOG_MCP_CONFIG: join(folder, 'mcp.json'),
      POLYLOG_SKILLS_DIR: skills,
      // Keep-alives belong to connections, and the comparison is about the journal.
      POLYLOG_PING_MS: '600000',
      POLYLOG_FCMP_HEARTBEAT_MS: '600000',
      POLYLOG_SESSION_HEARTBEAT_MS: '600000',
    },
    async ledger() {
      const paid = (await readJson(`${ledger.baseUrl}/ledger`)) as Record<string, number>
      return { paid, stamped: (await readJson(`${ledger.baseUrl}/stamps`)) as Record<string, number> }
    },
    async dispose() {
      await provider.stop()
      await ledger.stop()
      for (const path of [folder, skills]) rmSync(path, { recursive: true, force: true })
    },
  }
}
