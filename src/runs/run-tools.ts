// Which tools a run may use.

import { agentAllowsTool, type AgentCard } from '../agents/agent-definition.ts'
import { type CallState, type RunState, specOf } from '../journal/run-state.ts'
import type { Tool } from '../tools/tool.ts'
import type { KindOf } from './run-kind.ts'
import type { RunParts } from './run-parts.ts'

/**
 * The tools a run may use: available, allowed by its agent, not filtered out by the request, and fit for its workspace:
 * those that need one only where there is one, and in mode `ask` only those that read.
 */
export function toolsOf(parts: Pick<RunParts, 'tools' | 'kindOf'>, card: AgentCard, state: RunState): Tool[] {
  return parts.tools.available().filter((tool) => mayUse(tool, tool.name, card, state, parts.kindOf))
}

/** The tool that a call of this run means today: at the source that it was called at, under the same rules. */
export function toolOfCall(
  parts: Pick<RunParts, 'tools' | 'kindOf'>,
  card: AgentCard,
  state: RunState,
  call: Pick<CallState, 'name' | 'source'>,
): Tool | undefined {
  const tool = parts.tools.find(call.name, call.source)
  return tool !== undefined && mayUse(tool, call.name, card, state, parts.kindOf) ? tool : undefined
}

function mayUse(tool: Tool, name: string, card: AgentCard, state: RunState, kindOf: KindOf): boolean {
  const spec = specOf(state)
  const { audience = 'all' } = tool
  if (audience !== 'all' && !kindOf(spec).isAudience(audience, state)) return false
  if (tool.audience === undefined) {
    if (!agentAllowsTool(card, name)) return false
    if (spec.tools !== undefined && !spec.tools.includes(name)) return false
  }
  if (tool.needsWorkspace === true && spec.workspace === undefined) return false
  return spec.workspace?.mode !== 'ask' || tool.effect === 'read'
}
