// Folders of agent definitions for tests: a definition that works, in which a test changes the
// fields that it is about.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type AgentFolder = {
  readonly path: string
  /** Writes an agent's folder. `card` changes fields of agent.json (undefined removes one); `files` are added to the usual ones. */
  agent(folder: string, card?: Record<string, unknown>, files?: Record<string, string>): void
  write(path: string, text: string): void
  remove(path: string): void
  dispose(): void
}

export const objectSchema = (properties: Record<string, unknown> = {}, required: string[] = []): string =>
  JSON.stringify({ type: 'object', properties, required })

export function agentFolder(): AgentFolder {
  const path = mkdtempSync(join(tmpdir(), 'polylog-agents-'))
  const folder: AgentFolder = {
    path,
    agent(name, card = {}, files = {}) {
      const fields = {
        id: name,
        version: '1.0.0',
        prompt: { systemTemplate: 'system.mustache', userTemplate: 'user.mustache' },
        memory: { strategy: 'declarative', maxTokens: 1000 },
        tools: { mode: 'none', allowedTools: [] },
        validation: { inputSchema: 'input.json', outputSchema: 'output.json' },
        ...card,
      }
      const all = {
        'agent.json': JSON.stringify(fields),
        'system.mustache': 'Write in {{language}}. Schema: {{{outputSchema}}}',
        'user.mustache': '{{{data}}}',
        'input.json': objectSchema({ text: { type: 'string' } }, ['text']),
        'output.json': objectSchema({ answer: { type: 'string' } }, ['answer']),
        ...files,
      }
      for (const [file, text] of Object.entries(all)) folder.write(join(name, file), text)
    },
    write(file, text) {
      mkdirSync(dirname(join(path, file)), { recursive: true })
      writeFileSync(join(path, file), text)
    },
    remove: (file) => rmSync(join(path, file), { recursive: true }),
    dispose: () => rmSync(path, { recursive: true, force: true }),
  }
  return folder
}
