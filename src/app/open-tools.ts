// Opens the tools of the server: built-in ones, those in code, and those of MCP servers.

import { jobFilesOf } from '../jobs/job-files.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { toolOutputsOf } from '../runs/output-reader.ts'
import type { SkillRegistry } from '../skills/skill-registry.ts'
import type { Store } from '../stores/store.ts'
import { createBuiltInTools } from '../tools/built-in.ts'
import { checkCodeTools } from '../tools/check-code-tools.ts'
import type { connectMcpServers } from '../tools/mcp.ts'
import { readMcpConfig } from '../tools/mcp-config.ts'
import { createToolRegistry, type ToolEntry } from '../tools/tool-registry.ts'
import type { ToolRegistry } from '../tools/tool.ts'
import type { SandboxKind } from '../tools/workspace/shell-sandbox.ts'
import { createWorkspaceTools } from '../tools/workspace/workspace-tools.ts'
import type { WorkspaceFolders } from '../tools/workspace/workspaces.ts'
import { configInvalid, shownPath } from './config-problems.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'

type ToolDependencies = {
  store: Store
  skills: SkillRegistry
  log: Log
  clock: Clock
  ids: Ids
  workspaces: WorkspaceFolders
  environment: Record<string, string | undefined>
  codeTools: readonly unknown[]
}

export async function openTools(
  config: Config,
  { store, skills, log, clock, ids, workspaces, environment, codeTools }: ToolDependencies,
): Promise<ToolRegistry> {
  const servers =
    config.mcpServers ?? (config.mcpConfigFile === null ? undefined : await readMcpConfig(config.mcpConfigFile))
  const builtIn = createBuiltInTools({
    clock,
    notes: store,
    contacts: store,
    jobFiles: jobFilesOf(store, (id, path) => skills.readFile(id, path)),
    outputs: toolOutputsOf(store),
    feishu: given(config.feishu),
  })
  const { bash, sandbox, skillsDir } = config
  const workspace = createWorkspaceTools({
    folders: workspaces,
    store,
    clock,
    ids,
    bash,
    sandbox,
    skillsDir,
    onSandbox: (kind) => warnOfBash(kind, bash, log),
  })
  const timeoutMs = config.limits.toolTimeoutMs
  const { entries: inCode, problems } = checkCodeTools(codeTools, [...builtIn, ...workspace.entries], {
    timeoutMs,
    log,
  })
  if (problems.length > 0) {
    await workspace.close()
    throw configInvalid(
      problems.map(({ place, message }) => (place === null ? message : `${shownPath(place)}: ${message}`)),
    )
  }
  const mcp = servers && (await connect(servers, { clock, log, environment, callTimeoutMs: timeoutMs }))
  const own = [...builtIn, ...workspace.entries, ...inCode]
  const registry = createToolRegistry([...own, ...(mcp?.entries ?? [])], {
    close: async () => {
      await Promise.all([workspace.close(), mcp?.close()])
    },
    ...(mcp === undefined ? {} : { awaitSource: mcp.awaitSource }),
  })
  warnOfSharedNames(inCode, mcp?.entries ?? [], log)
  mcp?.onChange((entries) => {
    warnOfSharedNames(inCode, entries, log)
    registry.replace([...own, ...entries])
  })
  return registry
}

/** The client of MCP servers takes a tenth of the time of a start, and most servers have none to connect to. */
async function connect(...given: Parameters<typeof connectMcpServers>): ReturnType<typeof connectMcpServers> {
  const mcp = await import('../tools/mcp.ts')
  return await mcp.connectMcpServers(...given)
}

/** Not an error: an MCP server may be connected late or gain a tool, and must not be able to keep this server from starting. */
function warnOfSharedNames(inCode: readonly ToolEntry[], fromServers: readonly ToolEntry[], log: Log): void {
  const names = new Set(inCode.map((entry) => 'tool' in entry && entry.tool.name))
  for (const entry of fromServers)
    if ('tool' in entry && names.has(entry.tool.name))
      log.warn(
        { tool: entry.tool.name, source: entry.source },
        'a tool in code and a tool of an MCP server have the same name; that of the server gets its name as a prefix',
      )
}

function warnOfBash(kind: SandboxKind, bash: Config['bash'], log: Log): void {
  if (kind === 'bwrap') log.info({ sandbox: kind }, 'agents may run commands, each in a sandbox')
  else
    log.warn(
      { sandbox: kind, bash },
      'agents may run commands, with the rights of this server’s user: they can reach its files and its network. docs/workspace.md says what is not isolated.',
    )
}

/** Unset settings are null in the configuration and absent elsewhere. */
function given(feishu: Config['feishu']): { appId?: string; appSecret?: string; baseUrl?: string } {
  return Object.fromEntries(Object.entries(feishu).filter(([, value]) => value !== null))
}
