// Which tools the provider of a run may run itself. The operator names them in an agent or in a
// set of model settings; a request may choose others, if the agent allows tools of that name.

import { type AgentCard, agentAllowsTool } from '../agents/agent-definition.ts'
import { AppError } from '../errors/app-error.ts'
import type { ProviderTool, ProviderToolName } from '../journal/provider-tools.ts'
import type { Models } from '../models/model.ts'

/** Undefined if there are none. Throws `provider_tool_unavailable`. */
export function chosenProviderTools(
  requested: readonly ProviderToolName[] | undefined,
  {
    offered,
    card,
    chain,
    models,
  }: {
    offered: readonly ProviderTool[] | undefined
    card: AgentCard
    /** The `provider/model` of the run and of its fallbacks; each has to have the tools. */
    chain: readonly string[]
    models: Pick<Models, 'providerTools'>
  },
): ProviderTool[] | undefined {
  const chosen =
    requested === undefined
      ? [...(offered ?? [])]
      : [...new Set(requested)].map((name) => offered?.find((tool) => tool.name === name) ?? { name })
  if (chosen.length === 0) return undefined
  for (const { name } of chosen) {
    if (requested !== undefined && !offered?.some((tool) => tool.name === name) && !agentAllowsTool(card, name)) {
      throw unavailable(`The agent ${card.id} does not allow the tool ${name}. Leave it out of providerTools.`, name)
    }
    for (const model of chain) {
      const known = models.providerTools(model)
      if (known.includes(name)) continue
      const runs =
        known.length === 0 ? `no tools itself, so it cannot run ${name}` : `only ${known.join(', ')}, not ${name}`
      throw unavailable(
        `The provider of the model ${model} runs ${runs}. Use another model, or send providerTools without it.`,
        name,
      )
    }
  }
  return chosen
}

function unavailable(message: string, tool: string): AppError {
  return new AppError('provider_tool_unavailable', message, { details: { tool } })
}
