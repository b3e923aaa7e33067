// Which node may execute a run. With several nodes on one database, not every node need have every
// MCP server, remote engine, agent or directory. A run is stored with what it needs of its node, and
// a node claims only runs whose needs it offers. A plain run needs nothing.

import { agentAllowsTool } from '../agents/agent-definition.ts'
import type { Catalogue } from '../agents/catalogue.ts'
import type { Engines } from '../engines/engine.ts'
import type { RunSpec } from '../journal/event.ts'
import type { ToolRegistry } from '../tools/tool.ts'

/** What this node has. Absent in a server that is alone: its runs need nothing. */
export interface Placement {
  /** The name of this node, by which runs in its directories are found again after a restart. */
  readonly nodeName: string
  /** The workspace is on a volume that every node mounts. */
  readonly workspaceShared: boolean
  /** Whether every node has the agent, because it comes with the program. */
  isBuiltInAgent(agentId: string): boolean
  /** What this node offers at the moment, in the words of `needsOf`. */
  offers(): readonly string[]
}

export const needOf = {
  engine: (name: string) => `engine:${name}`,
  mcpServer: (name: string) => `mcp:${name}`,
  agent: (id: string) => `agent:${id}`,
  skill: (id: string) => `skill:${id}`,
  directory: (nodeName: string) => `dir:${nodeName}`,
}

/** The source of the tools of an MCP server is what a run that may use them needs. */
const mcpSource = needOf.mcpServer('')

export function mcpNeeds(sources: Iterable<string>): string[] {
  return [...new Set(sources)].filter((source) => source.startsWith(mcpSource))
}

type NeedDependencies = {
  placement?: Placement
  engines: Pick<Engines, 'get'>
  catalogue: Pick<Catalogue, 'get'>
  tools: Pick<ToolRegistry, 'available'>
}

/** `directoryNode`: the node that has the directory of the run; absent: this one. */
export function needsOf(
  spec: RunSpec,
  { placement, engines, catalogue, tools }: NeedDependencies,
  directoryNode?: string,
): string[] {
  if (placement === undefined) return []
  const needs: string[] = []
  const { engine, agentId, workspace, skill, job } = spec
  if (!placement.isBuiltInAgent(agentId)) needs.push(needOf.agent(agentId))
  if (engines.get(engine).kind === 'turn') needs.push(needOf.engine(engine))
  else {
    const { card } = catalogue.get(agentId)
    const usable = tools
      .available()
      .filter(({ name }) => agentAllowsTool(card, name) && (spec.tools === undefined || spec.tools.includes(name)))
    needs.push(...mcpNeeds(usable.map(({ source }) => source ?? '')))
  }
  // The files of an uploaded skill are in the database.
  if (skill !== undefined && job?.source !== 'temp_upload') needs.push(needOf.skill(skill.id))
  if (workspace !== undefined && !placement.workspaceShared)
    needs.push(needOf.directory(directoryNode ?? placement.nodeName))
  return needs
}

/** The node that has the directory of a run with these needs. */
export function directoryNodeOf(needs: readonly string[]): string | undefined {
  const prefix = needOf.directory('')
  return needs.find((need) => need.startsWith(prefix))?.slice(prefix.length)
}

/** Whether this node may execute a run with these needs. */
export function isOffered(needs: readonly string[], placement: Placement | undefined): boolean {
  if (needs.length === 0) return true
  const offers = new Set(placement?.offers())
  return needs.every((need) => offers.has(need))
}

const kinds: Record<string, (name: string) => string> = {
  engine: (name) => `the engine ${name}`,
  mcp: (name) => `the MCP server ${name}`,
  agent: (name) => `the agent ${name}`,
  skill: (name) => `the skill ${name}`,
  dir: (name) => `the working directory of this session, which is on the node ${name}`,
}

/** Needs in words, for people. */
export function describeNeeds(needs: readonly string[]): string {
  const words = needs.map((need) => {
    const at = need.indexOf(':')
    return kinds[need.slice(0, at)]?.(JSON.stringify(need.slice(at + 1))) ?? need
  })
  const last = words.pop() ?? ''
  return words.length === 0 ? last : `${words.join(', ')} and ${last}`
}
