// Tools of the caller: which of them a request may bring, and how the model is offered them. A call is
// handed over to the client, and its result comes back through `ClientToolService`. Pure.

import { agentAllowsTool, type AgentCard } from '../agents/agent-definition.ts'
import { AppError } from '../errors/app-error.ts'
import { type ClientTool, clientToolSource, clientToolsProblem } from '../journal/client-tool.ts'
import { argumentCheck } from '../kit/argument-check.ts'
import { defined } from '../kit/defined.ts'
import type { Tool } from '../tools/tool.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { StartRequest } from './start-request.ts'

export type ClientToolsContext = {
  request: Pick<StartRequest, 'consent'>
  engine: string
  card: AgentCard
  dependencies: Pick<RunDependencies, 'engines' | 'tools'>
}

/**
 * The tools that the agent declares, and those of the request, which replace tools of the agent with the same name. If the
 * client cannot be asked, the run has none; a request that brings some is then refused. Throws `client_tools_invalid` or
 * `client_tool_conflict`.
 */
export function clientToolsFor(
  requested: readonly ClientTool[] | undefined,
  context: ClientToolsContext,
): ClientTool[] | undefined {
  const brought = requested ?? []
  const refusal = whyNone(context)
  if (refusal !== null && brought.length > 0) throw invalid(refusal)
  const names = new Set(brought.map(({ name }) => name))
  const declared = refusal === null ? (context.card.clientTools ?? []) : []
  const tools = [...declared.filter(({ name }) => !names.has(name)), ...brought]
  if (tools.length === 0) return undefined
  checkTools(tools, context)
  return tools
}

/** Why the calls of a run cannot be handed over to a client; null if they can. */
function whyNone({ request, engine, dependencies }: ClientToolsContext): string | null {
  if (request.consent === 'refuse')
    return 'cannot be used here, because this API does not wait for results. Use POST /v1/agent/chat'
  if (dependencies.engines.get(engine).kind === 'turn')
    return `cannot be used with the engine ${engine}, which executes its own tools. Leave them out, or use another engine`
  return null
}

function checkTools(tools: readonly ClientTool[], { card, dependencies }: ClientToolsContext): void {
  const problem = clientToolsProblem(tools)
  if (problem !== null) throw invalid(`cannot be used: ${problem}`)
  const names = new Set(tools.map(({ name }) => name))
  const taken = dependencies.tools.available().find((tool) => names.has(tool.name) && agentAllowsTool(card, tool.name))
  if (taken !== undefined) {
    throw new AppError(
      'client_tool_conflict',
      `The server has a tool with the name ${JSON.stringify(taken.name)}. Rename yours.`,
      { details: { name: taken.name } },
    )
  }
}

function invalid(what: string): AppError {
  return new AppError('client_tools_invalid', `clientTools ${what}.`)
}

/** The tool as the model is offered it. It is never executed here. */
export function toolOfClient({ name, description = '', inputSchema, strict }: ClientTool): Tool {
  return {
    name,
    source: clientToolSource,
    description,
    // The client may have executed a call whose result never came.
    effect: 'unsafe',
    confirm: 'never',
    inputSchema: { type: 'object', ...inputSchema },
    ...defined({ strict }),
    check(input) {
      const check = argumentCheck(inputSchema)
      return check.ok ? check.check(input) : null
    },
    timeoutMs: 0,
    outputCharsMax: 0,
    describe: () => `Call ${name} of the client`,
    run: async () => {
      throw new AppError('internal_error', `The tool ${name} belongs to the client and cannot be executed here.`)
    },
  }
}
