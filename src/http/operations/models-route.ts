// GET /v1/models, and one of them: the models and agents that can be used, in the shape of the OpenAI API's
// list, with their windows and abilities.

import { z } from 'zod'
import { firstChoice } from '../../journal/model-chain.ts'
import type { ModelFacts, Models, ModelTable } from '../../models/model.ts'
import { AppError } from '../../errors/app-error.ts'
import { openAiErrorView } from '../openai-api/chat-completion-routes.ts'
import { idParam, type Server, type Services } from '../routes.ts'

const price = z.object({
  input: z.number(),
  cached: z.number().optional(),
  cacheWrite: z.number().optional(),
  output: z.number(),
})

const modelView = z
  .object({
    id: z.string().describe('provider/model, or agent/ and the id of an agent.'),
    object: z.literal('model'),
    created: z.number().describe('Always 0: it is not known when the model was made.'),
    owned_by: z.string().describe('The provider; `polylog` for agents.'),
    kind: z.enum(['model', 'agent']),
    name: z.string().nullable().describe('The name of an agent.'),
    model: z.string().describe('The model that answers; for an agent, the one that it uses by default.'),
    isDefault: z.boolean().describe('True for the model that answers if a request names none.'),
    contextTokens: z.number().nullable(),
    maxOutputTokens: z.number().nullable(),
    abilities: z
      .object({
        vision: z.boolean().nullable(),
        pdf: z.boolean().nullable(),
        reasoning: z.boolean().nullable(),
        structuredOutput: z.boolean().nullable(),
      })
      .describe('Null means that it is not known.'),
    providerTools: z.array(z.string()).describe('The tools that the provider can run itself while it answers.'),
    price: price
      .extend({ above: price.extend({ inputTokens: z.number() }).optional() })
      .nullable()
      .describe('In US dollars for a million tokens; null if it is not known.'),
  })
  .meta({ id: 'Model' })

type ModelView = z.infer<typeof modelView>

export function modelsRoute(server: Server, { models, modelTable, configs, catalogue }: Services): void {
  server.get(
    '/v1/models',
    {
      schema: {
        tags: ['Usage'],
        summary: 'The models and agents that can be used',
        description:
          'Known models of the configured providers, the default model, those of the named sets of settings, and the agents.',
        response: {
          200: z.object({ object: z.literal('list'), pricesAsOf: z.string(), data: z.array(modelView) }),
        },
      },
    },
    async () => ({ object: 'list' as const, pricesAsOf: modelTable.asOf, data: listed() }),
  )

  server.get(
    '/v1/models/:model',
    {
      schema: {
        tags: ['Usage'],
        summary: 'One model or agent of the list',
        params: z.object({ model: idParam }),
        response: { 200: modelView, 404: openAiErrorView },
      },
    },
    async ({ params }) => {
      const all = listed()
      // Requests may name an agent without the prefix, too.
      const found = [params.model, `agent/${params.model}`]
        .map((name) => all.find(({ id }) => id === name))
        .find((one) => one !== undefined)
      if (found === undefined) {
        const name = JSON.stringify(params.model)
        throw new AppError('model_not_found', `There is no model ${name}. GET /v1/models lists those that there are.`)
      }
      return found
    },
  )

  function listed(): ModelView[] {
    const ready = new Set(models.list().flatMap(({ provider, ready: usable }) => (usable ? [provider] : [])))
    const known = modelTable.names().filter((name) => ready.has(providerOf(name)))
    const named = configs.list().map(({ model }) => resolved(models, firstChoice(model)))
    const names = [...new Set([models.defaultModel, ...named, ...models.listed(), ...known])].filter(
      (name) => name !== null,
    )
    const agents = catalogue.list().flatMap(({ id, card, error }): ModelView[] => {
      const model = error === null && card !== null ? resolved(models, firstChoice(card.model)) : null
      if (card === null || model === null) return []
      const view = { ...viewOf(model, models, modelTable), id: `agent/${id}`, owned_by: 'polylog' }
      return [{ ...view, kind: 'agent', name: card.name ?? id, isDefault: false }]
    })
    return [...names.map((name) => viewOf(name, models, modelTable)), ...agents]
  }
}

function viewOf(name: string, models: Models, table: ModelTable): ModelView {
  const facts: Partial<ModelFacts> = table.find(name) ?? {}
  return {
    id: name,
    object: 'model',
    created: 0,
    owned_by: providerOf(name),
    kind: 'model',
    name: null,
    model: name,
    isDefault: name === models.defaultModel,
    contextTokens: facts.contextTokens ?? null,
    maxOutputTokens: facts.maxOutputTokens ?? null,
    abilities: {
      vision: facts.vision ?? null,
      pdf: facts.pdf ?? null,
      reasoning: facts.reasoning ?? null,
      structuredOutput: facts.structuredOutput ?? null,
    },
    providerTools: [...models.providerTools(name)],
    price: facts.price ?? null,
  }
}

function providerOf(name: string): string {
  return name.slice(0, name.indexOf('/'))
}

/** Null if the model cannot be used on this server. */
function resolved(models: Models, name: string | undefined): string | null {
  try {
    return models.resolve(name)
  } catch {
    return null
  }
}
