// Decides which tools a run may use.

import { agentAllowsTool, type AgentCard } from '../agents/agent-definition.ts'
import { type CallState, type RunState, specOf } from '../journal/run-state.ts'
import type { Tool } from '../tools/tool.ts'
import type { KindOf } from './run-kind.ts'
import type { RunDependencies } from './run-dependencies.ts'

/**
 * The tools that are available, allowed by the agent and not filtered out by the request. Tools that need a workspace are
 * included only if the run has one; in workspace mode `ask`, only tools that read are.
 */
export function toolsOf(
  dependencies: Pick<RunDependencies, 'tools' | 'kindOf'>,
  card: AgentCard,
  state: RunState,
): Tool[] {
  return dependencies.tools.available().filter((tool) => mayUse(tool, tool.name, card, state, dependencies.kindOf))
}

/** The tool that a call refers to now, from the source in the call. Undefined if it is missing or not allowed. */
export function toolOfCall(
  dependencies: Pick<RunDependencies, 'tools' | 'kindOf'>,
  card: AgentCard,
  state: RunState,
  call: Pick<CallState, 'name' | 'source'>,
): Tool | undefined {
  const tool = dependencies.tools.find(call.name, call.source)
  return tool !== undefined && mayUse(tool, call.name, card, state, dependencies.kindOf) ? tool : undefined
}

function mayUse(tool: Tool, name: string, card: AgentCard, state: RunState, kindOf: KindOf): boolean {
  const spec = specOf(state)
  const { audience = 'all' } = tool
  if (audience !== 'all' && !kindOf(spec).isAudience(audience, state)) return false
  if (audience === 'all' || audience === 'chats') {
    if (!agentAllowsTool(card, name)) return false
    if (spec.tools !== undefined && !spec.tools.includes(name)) return false
  }
  if (tool.needsWorkspace === true && spec.workspace === undefined) return false
  return spec.workspace?.mode !== 'ask' || tool.effect === 'read'
}
