// A working directory in a folder of its own, with a secret beside it that no tool
// may reach, and the tools that work in it.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonValue } from '../../src/journal/event.ts'
import { type Clock, systemClock } from '../../src/kit/clock.ts'
import type { FileVersionRow, TodoItem } from '../../src/stores/workspace-store.ts'
import { createToolRegistry } from '../../src/tools/tool-registry.ts'
import type { ToolContext, ToolRegistry, ToolResult } from '../../src/tools/tool.ts'
import type { FileVersions } from '../../src/tools/workspace/session-files.ts'
import type { TodoStore } from '../../src/tools/workspace/todos.ts'
import { createWorkspaceTools, type WorkspaceToolOptions } from '../../src/tools/workspace/workspace-tools.ts'
import { createWorkspaces, type WorkspaceFolders } from '../../src/tools/workspace/workspaces.ts'
import type { Json } from './test-server.ts'
import { countingIds } from './run-rig.ts'
import { toolContext } from './tool-context.ts'

export const secret = 'the secret that nobody may read'

export type Bench = {
  /** The parent folder, which also holds the secret. */
  folder: string
  /** The working directory. */
  directory: string
  folders: WorkspaceFolders
  registry: ToolRegistry
  /** Runs a tool with a fresh key; its answer. */
  use(name: string, input: JsonValue, context?: Partial<ToolContext>): Promise<ToolResult & { output: Json }>
  write(path: string, text: string): void
  read(path: string): string
  has(path: string): boolean
  close(): Promise<void>
}

export type BenchOptions = Partial<Pick<WorkspaceToolOptions, 'bash' | 'sandbox' | 'skillsDir'>> & {
  clock?: Clock
  store?: FileVersions & TodoStore
}

export function openBench(options: BenchOptions = {}): Bench {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'polylog-bench-')))
  const directory = join(folder, 'workspace', 'mine')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(folder, 'secret.txt'), secret)
  mkdirSync(join(folder, 'workspace', 'theirs'))
  writeFileSync(join(folder, 'workspace', 'theirs', 'secret.txt'), secret)
  const folders = createWorkspaces(join(folder, 'workspace'))
  const tools = createWorkspaceTools({
    folders,
    store: options.store ?? memoryKeeper(),
    clock: options.clock ?? systemClock,
    ids: countingIds(`bench-${process.pid}-${folder.slice(-6)}`),
    bash: options.bash ?? 'off',
    sandbox: options.sandbox ?? 'none',
    skillsDir: options.skillsDir ?? join(folder, 'no-skills'),
  })
  const registry = createToolRegistry(tools.entries, { close: tools.close })
  let keys = 0
  return {
    folder,
    directory,
    folders,
    registry,
    async use(name, input, context = {}) {
      const tool = registry.get(name)
      if (tool === undefined) throw new Error(`${name} is not offered`)
      const wrong = registry.check(tool, input)
      if (wrong !== null) throw new Error(wrong)
      keys += 1
      const own = { conversationId: 'session', idempotencyKey: `use-${keys}`, workspace: { dir: 'mine' } }
      const result = await tool.run(input, toolContext({ ...own, ...context }))
      return { ...result, output: result.output as Json }
    },
    write(path, text) {
      writeFileSync(join(directory, path), text)
    },
    read: (path) => readFileSync(join(directory, path), 'utf8'),
    has: (path) => existsSync(join(directory, path)),
    async close() {
      await registry.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function memoryKeeper(): FileVersions & TodoStore {
  const versions = new Map<string, FileVersionRow>()
  const lists = new Map<string, TodoItem[]>()
  return {
    readFileVersion: async (scope, path) => versions.get(`${scope} ${path}`),
    saveFileVersion: async (row) => void versions.set(`${row.scope} ${row.path}`, row),
    readTodos: async (scope) => lists.get(scope) ?? [],
    saveTodos: async (scope, todos) => void lists.set(scope, todos),
  }
}
