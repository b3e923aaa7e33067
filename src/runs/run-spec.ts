// Builds the spec of a run from a request. The spec holds everything that is needed to
// execute the run, and never changes. Throws if the request names an agent, a
// configuration or a model that does not exist.

import { modelOfAgent } from '../agents/agent-model.ts'
import { chatAgentId } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { RunSpec } from '../journal/event.ts'
import { defined } from '../kit/defined.ts'
import { boundContext, enabledTools } from './bounded-context.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { StartRequest } from './start-request.ts'

/** Settings of the request override those of the configuration, which override those of the agent. */
export function specFor(
  request: StartRequest,
  dependencies: Pick<RunDependencies, 'catalogue' | 'configs' | 'models' | 'engines'>,
): RunSpec {
  const agentId = request.agentId ?? chatAgentId
  const definition = dependencies.catalogue.get(agentId)
  const config = request.config === undefined ? undefined : dependencies.configs.get(request.config ?? undefined)
  if (request.instructions !== undefined && definition.card.callerInstructions === 'refused') {
    throw new AppError(
      'instructions_refused',
      `The agent ${JSON.stringify(agentId)} takes no instructions from callers; send messages without role "system".`,
    )
  }
  const context = request.context === undefined ? undefined : boundContext(request.context)
  const wanted = request.context === undefined ? undefined : enabledTools(request.context)
  const tools =
    wanted === undefined || config?.tools === undefined
      ? (wanted ?? config?.tools)
      : wanted.filter((name) => config.tools?.includes(name))
  const { models } = dependencies
  const named = request.model ?? config?.model
  const temperature = request.temperature ?? config?.temperature
  const maxTokens = request.maxTokens ?? config?.maxTokens
  return {
    agentId,
    engine: dependencies.engines.resolve(request.engine, agentId),
    model: named === undefined ? modelOfAgent(definition.card, models) : models.resolve(named),
    ...defined({
      temperature,
      maxTokens,
      context,
      instructions: request.instructions,
      tools,
      onDisconnect: request.onDisconnect,
      configName: config?.name,
      systemPrompt: config?.systemPrompt,
      variant: request.variant,
      sentAt: request.sentAt,
      workspace: request.workspace,
      consent: request.consent,
    }),
  }
}
