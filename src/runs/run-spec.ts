// Builds the spec of a run from a request. The spec holds everything that is needed to
// execute the run, and never changes. Throws if the request names an agent, a
// configuration or a model that does not exist.

import { modelsOfAgent } from '../agents/agent-model.ts'
import { chatAgentId } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { RunSpec } from '../journal/event.ts'
import { schemaProblem } from '../kit/json-schema.ts'
import { checkRequestedOptions, mergedOptions } from '../journal/provider-options.ts'
import { defined } from '../kit/defined.ts'
import { clientToolsFor } from './client-tools.ts'
import { resolveChain } from '../journal/model-chain.ts'
import { boundContext, boundWholeContext, enabledTools } from './bounded-context.ts'
import { chosenProviderTools } from './chosen-provider-tools.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { StartRequest } from './start-request.ts'

/** Settings of the request override those of the configuration, which override those of the agent. */
export function specFor(
  request: StartRequest,
  dependencies: Pick<RunDependencies, 'catalogue' | 'configs' | 'models' | 'engines' | 'tools'>,
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
  const boundOf = request.agUi === undefined ? boundContext : boundWholeContext
  const context = request.context === undefined ? undefined : boundOf(request.context)
  const wanted = request.context === undefined ? undefined : enabledTools(request.context)
  const tools =
    wanted === undefined || config?.tools === undefined
      ? (wanted ?? config?.tools)
      : wanted.filter((name) => config.tools?.includes(name))
  const { models } = dependencies
  const named = request.model ?? config?.model
  checkRequestedOptions(
    request.providerOptions,
    models.list().map(({ provider }) => provider),
  )
  const temperature = request.temperature ?? config?.temperature
  const maxTokens = request.maxTokens ?? config?.maxTokens
  const engine = dependencies.engines.resolve(request.engine ?? config?.engine, agentId)
  // The schema of a definition comes from a JSON file, so its values are JSON values.
  const outputSchema = request.output?.schema ?? (definition.answerSchema as RunSpec['outputSchema'])
  const clientTools = clientToolsFor(request.clientTools, { request, engine, card: definition.card, dependencies })
  if (outputSchema !== undefined) checkOutput(outputSchema, engine, dependencies)
  const { model, fallbackModels } =
    named === undefined ? modelsOfAgent(definition.card, models) : resolveChain(named, models)
  const providerTools = chosenProviderTools(request.withoutTools === true ? [] : request.providerTools, {
    offered: config?.providerTools ?? definition.card.providerTools,
    card: definition.card,
    chain: [model, ...(fallbackModels ?? [])],
    models,
  })
  return {
    agentId,
    engine,
    model,
    ...defined({
      fallbackModels,
      providerTools,
      temperature,
      maxTokens,
      sampling: request.sampling,
      toolChoice: request.toolChoice,
      providerOptions: mergedOptions(definition.card.providerOptions, config?.providerOptions, request.providerOptions),
      context,
      instructions: request.instructions,
      tools: request.withoutTools === true ? [] : tools,
      clientTools,
      onDisconnect: request.onDisconnect,
      configName: config?.name,
      systemPrompt: config?.systemPrompt,
      outputSchema,
      variant: request.variant,
      sentAt: request.sentAt,
      workspace: request.workspace,
      consent: request.consent,
      agUi: request.agUi,
    }),
  }
}

/** Throws `output_schema_invalid`. */
function checkOutput(
  schema: NonNullable<RunSpec['outputSchema']>,
  engine: string,
  { engines }: Pick<RunDependencies, 'engines'>,
): void {
  const problem = schemaProblem(schema)
  if (problem !== null) {
    throw new AppError('output_schema_invalid', `output.schema cannot be used: ${problem}. Change the schema.`)
  }
  if (engines.get(engine).kind === 'turn') {
    throw new AppError(
      'output_schema_invalid',
      `The engine ${engine} is a remote agent, whose answer cannot be held to a schema. Leave out "output", or use another engine.`,
    )
  }
}
