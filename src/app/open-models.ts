// Opens the models: the providers that are configured, the named sets of model settings, and
// the table of what models cost and can take.

import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { checkedModelSets, readModelConfigs } from '../models/model-configs.ts'
import { readModelTable } from '../models/model-table.ts'
import type { ModelConfigs, ModelFacts, Models, ModelTable } from '../models/model.ts'
import { createModels } from '../models/providers.ts'
import type { Config } from './config.ts'

export type OpenModels = { models: Models; configs: ModelConfigs; modelTable: ModelTable }

export async function openModels(
  config: Config,
  { environment, ids, clock }: { environment: Record<string, string | undefined>; ids: Ids; clock: Clock },
): Promise<OpenModels> {
  const models = createModels({
    ...config.providers,
    model: config.model,
    openaiApi: config.openaiApi,
    openaiClient: config.openaiClient,
    demo: config.demo,
    demoPaceMs: config.demoPaceMs,
    named: config.namedProviders,
    environment,
    ids,
    clock,
  })
  const configs =
    config.modelSets === null
      ? await readModelConfigs(config.modelConfigsFile, models)
      : checkedModelSets(config.modelSets, models)
  const modelTable = await readModelTable(config.modelTableFile, knownFactsOf(config.namedProviders))
  return { models, configs, modelTable }
}

/** What the operator says about the models of named providers, by `provider/model`. */
function knownFactsOf(providers: Config['namedProviders']): Record<string, ModelFacts> {
  const known: Record<string, ModelFacts> = {}
  for (const { name, models } of providers)
    for (const [model, facts] of Object.entries(models ?? {}))
      if (facts !== undefined) known[`${name}/${model}`] = facts
  return known
}
