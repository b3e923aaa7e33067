// The tools that work in a session's directory, in the order in which models see them.
// A tool that this machine or its operator does not allow is listed with the reason.

import type { Clock } from '../../kit/clock.ts'
import type { Ids } from '../../kit/ids.ts'
import type { Tool } from '../tool.ts'
import type { ToolEntry } from '../tool-registry.ts'
import { createBashKillTool } from './bash-kill.ts'
import { createBashLogsTool } from './bash-logs.ts'
import { createBashRunTool } from './bash-run.ts'
import { descriptorsWork } from './descriptors.ts'
import { createFsEditTool } from './fs-edit.ts'
import { createFsGlobTool } from './fs-glob.ts'
import { createFsGrepTool } from './fs-grep.ts'
import { createFsMultiEditTool } from './fs-multi-edit.ts'
import { createFsReadTool } from './fs-read.ts'
import { createFsWriteTool } from './fs-write.ts'
import { SearchPool } from './search-pool.ts'
import { type FileVersions, SessionFiles } from './session-files.ts'
import { findSandbox, hasShell, type SandboxKind } from './shell-sandbox.ts'
import { Shells } from './shells.ts'
import { createSkillsTool } from './skills.ts'
import { createTodoTools, type TodoStore } from './todos.ts'
import type { WorkspaceFolders } from './workspaces.ts'

export type WorkspaceToolOptions = {
  folders: WorkspaceFolders
  store: FileVersions & TodoStore
  clock: Clock
  ids: Ids
  bash: 'off' | 'confirm' | 'allow'
  sandbox: 'auto' | SandboxKind
  skillsDir: string
  /** Called with the sandbox that commands run in; not called if bash is off or unavailable. */
  onSandbox?: (kind: SandboxKind) => void
}

export type WorkspaceTools = { entries: ToolEntry[]; close(): Promise<void> }

export function createWorkspaceTools(options: WorkspaceToolOptions): WorkspaceTools {
  const { folders, store } = options
  const files = new SessionFiles(folders, store)
  const pool = new SearchPool({ clock: options.clock })
  const fileTools = [
    createFsReadTool(files),
    createFsWriteTool(files),
    createFsEditTool(files),
    createFsMultiEditTool(files),
    createFsGlobTool(files),
    createFsGrepTool(files, pool),
  ]
  const bash = bashTools(options)
  const noFiles = descriptorsWork() ? null : 'It needs Linux with /proc.'
  return {
    entries: [
      ...fileTools.map((tool) => entryOf(tool, noFiles)),
      ...bash.entries,
      ...createTodoTools(store).map((tool) => entryOf(tool, null)),
      createSkillsTool(options.skillsDir),
    ],
    close: async () => {
      await Promise.all([bash.close(), pool.close()])
    },
  }
}

function bashTools(options: WorkspaceToolOptions): WorkspaceTools {
  const { folders, clock, ids } = options
  const possible = options.bash !== 'off' && hasShell() && descriptorsWork()
  const sandbox = possible ? findSandbox(options.sandbox) : null
  const reason =
    options.bash === 'off'
      ? 'Set POLYLOG_BASH to confirm or allow.'
      : !possible
        ? 'It needs Linux with /proc and /bin/bash.'
        : sandbox === null
          ? `POLYLOG_SANDBOX is ${options.sandbox}, which does not work here.`
          : null
  if (sandbox !== null) options.onSandbox?.(sandbox.kind)
  const shells = new Shells({ clock, ids, sandbox: sandbox ?? { kind: 'none', command: () => ['/bin/false'] } })
  const confirm = options.bash === 'allow' ? 'never' : 'always'
  const tools = [
    createBashRunTool({ folders, shells, clock, confirm }),
    createBashLogsTool(shells),
    createBashKillTool(shells),
  ]
  return { entries: tools.map((tool) => entryOf(tool, reason)), close: () => shells.close() }
}

function entryOf(tool: Tool, reason: string | null): ToolEntry {
  if (reason === null) return { source: 'built-in', tool }
  const { name, description, effect } = tool
  return { source: 'built-in', missing: { name, description, effect, reason } }
}
