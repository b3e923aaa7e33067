// What a request asks for → everything that is needed to execute the run, fixed from
// then on. Throws where it names an agent, a configuration or a model that is not there.

import { chatAgentId } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { RunSpec } from '../journal/event.ts'
import { boundContext, enabledTools } from './bounded-context.ts'
import type { RunParts } from './run-parts.ts'
import type { StartRequest } from './start-request.ts'

/** A request's own settings go before those of its configuration, and those before the agent's. */
export function specFor(
  request: StartRequest,
  parts: Pick<RunParts, 'catalogue' | 'configs' | 'models' | 'engineName'>,
): RunSpec {
  const agentId = request.agentId ?? chatAgentId
  const definition = parts.catalogue.get(agentId)
  const config = request.config === undefined ? undefined : parts.configs.get(request.config ?? undefined)
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
  const temperature = request.temperature ?? config?.temperature
  const maxTokens = request.maxTokens ?? config?.maxTokens
  return {
    agentId,
    engine: parts.engineName,
    model: parts.models.resolve(request.model ?? config?.model ?? definition.card.model),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(context === undefined ? {} : { context }),
    ...(request.instructions === undefined ? {} : { instructions: request.instructions }),
    ...(tools === undefined ? {} : { tools }),
    ...(request.onDisconnect === undefined ? {} : { onDisconnect: request.onDisconnect }),
    ...(config === undefined ? {} : { configName: config.name }),
    ...(config?.systemPrompt === undefined ? {} : { systemPrompt: config.systemPrompt }),
    ...(request.variant === undefined ? {} : { variant: request.variant }),
    ...(request.sentAt === undefined ? {} : { sentAt: request.sentAt }),
    ...(request.workspace === undefined ? {} : { workspace: request.workspace }),
    ...(request.consent === undefined ? {} : { consent: request.consent }),
  }
}
