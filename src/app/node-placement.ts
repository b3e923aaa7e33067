// What this node offers to runs that not every node can execute; see runs/placement.ts.

import { builtInAgents } from '../agents/read-agents.ts'
import type { Catalogue } from '../agents/catalogue.ts'
import { needOf, mcpNeeds, type Placement } from '../runs/placement.ts'
import type { SkillRegistry } from '../skills/skill-registry.ts'
import type { ToolRegistry } from '../tools/tool.ts'
import type { Config } from './config.ts'
import { remoteEngineOf } from './remote-agents.ts'

type NodeParts = {
  catalogue: Pick<Catalogue, 'list'>
  tools: Pick<ToolRegistry, 'list'>
  skills: Pick<SkillRegistry, 'list'>
  /** The remote engines that the settings name. */
  engines: readonly string[]
}

/** Undefined if no other node can use the database. */
export function nodePlacement(
  { databaseUrl, nodeName, workspaceShared }: Pick<Config, 'databaseUrl' | 'nodeName' | 'workspaceShared'>,
  { catalogue, tools, skills, engines }: NodeParts,
): Placement | undefined {
  if (databaseUrl === null) return undefined
  const fixed = [
    ...engines.map(needOf.engine),
    ...skills.list().flatMap(({ id, skill }) => (skill === null ? [] : [needOf.skill(id)])),
    ...(workspaceShared ? [] : [needOf.directory(nodeName)]),
  ]
  return {
    nodeName,
    workspaceShared,
    isBuiltInAgent: (agentId) => builtInAgents.has(agentId),
    // Agents and MCP servers may change while the server runs. A server that is configured counts also while it is not connected.
    offers() {
      const agents = catalogue.list().flatMap(({ id, definition }) => {
        if (definition === null) return []
        const engine = remoteEngineOf(definition.card)
        return [
          ...(builtInAgents.has(id) ? [] : [needOf.agent(id)]),
          ...(engine === undefined ? [] : [needOf.engine(engine)]),
        ]
      })
      return [...fixed, ...agents, ...mcpNeeds(tools.list().map(({ source }) => source))]
    },
  }
}
