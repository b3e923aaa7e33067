// Decides which tools a run may use.

import { agentAllowsTool, type AgentCard } from '../agents/agent-definition.ts'
import { clientToolSource } from '../journal/client-tool.ts'
import type { RunSpec } from '../journal/event.ts'
import { type CallState, type RunState, specOf } from '../journal/run-state.ts'
import { defined } from '../kit/defined.ts'
import type { ModelTool } from '../models/model.ts'
import type { Tool } from '../tools/tool.ts'
import { toolOfClient } from './client-tools.ts'
import type { KindOf } from './run-kind.ts'
import type { RunDependencies } from './run-dependencies.ts'

/**
 * The tools that are available, allowed by the agent and not filtered out by the request, and those of the client. Tools that need a workspace are
 * included only if the run has one; in workspace mode `ask`, only tools that read are.
 */
export function toolsOf(
  dependencies: Pick<RunDependencies, 'tools' | 'kindOf'>,
  card: AgentCard,
  state: RunState,
  /** Whether the prompt has a tool output that was cut. */
  hasCutOutputs: boolean,
): Tool[] {
  const { clientTools = [] } = specOf(state)
  const names = new Set(clientTools.map(({ name }) => name))
  // A server tool that came after the run was accepted must not share its name with a tool of the client.
  const own = dependencies.tools
    .available()
    .filter((tool) => hasCutOutputs || tool.audience !== 'large_outputs')
    .filter((tool) => !names.has(tool.name) && mayUse(tool, tool.name, card, state, dependencies.kindOf))
  return [...own, ...clientTools.map(toolOfClient)]
}

const offeredTools = new WeakMap<Tool, ModelTool>()

/** What the model is told about a tool; all runs share it. */
export function offeredTool(tool: Tool): ModelTool {
  let offered = offeredTools.get(tool)
  if (offered === undefined) {
    const { name, description, inputSchema, strict } = tool
    offered = { name, description, inputSchema, ...defined({ strict }) }
    offeredTools.set(tool, offered)
  }
  return offered
}

/** The tool that a call refers to now, from the source in the call. Undefined if it is missing or not allowed. */
export function toolOfCall(
  dependencies: Pick<RunDependencies, 'tools' | 'kindOf'>,
  card: AgentCard,
  state: RunState,
  call: Pick<CallState, 'name' | 'source'>,
): Tool | undefined {
  if (call.source === clientToolSource) {
    const brought = specOf(state).clientTools?.find(({ name }) => name === call.name)
    return brought === undefined ? undefined : toolOfClient(brought)
  }
  const tool = dependencies.tools.find(call.name, call.source)
  return tool !== undefined && mayUse(tool, call.name, card, state, dependencies.kindOf) ? tool : undefined
}

function mayUse(tool: Tool, name: string, card: AgentCard, state: RunState, kindOf: KindOf): boolean {
  const spec = specOf(state)
  const { audience = 'all' } = tool
  if (audience === 'large_outputs') return usesTools(card, spec) && !isDenied(card, name)
  if (audience !== 'all' && !kindOf(spec).isAudience(audience, state)) return false
  if (audience === 'all' || audience === 'chats') {
    if (!agentAllowsTool(card, name)) return false
    if (spec.tools !== undefined && !spec.tools.includes(name)) return false
  }
  if (tool.needsWorkspace === true && spec.workspace === undefined) return false
  return spec.workspace?.mode !== 'ask' || tool.effect === 'read'
}

/** An agent that lists its tools need not list one that only reads on in what they returned. */
function usesTools({ tools }: AgentCard, spec: RunSpec): boolean {
  return tools.mode !== 'none' && spec.tools?.length !== 0
}

function isDenied({ tools }: AgentCard, name: string): boolean {
  return tools.mode === 'denylist' && tools.allowedTools.includes(name)
}
