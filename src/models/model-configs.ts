// Reads the model configurations (named sets of model settings) from a JSON file. A request
// chooses one by name. It is copied into the spec of the run at acceptance, so that a later
// change of the file does not affect the run.

import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import { providerOptions } from '../journal/provider-options.ts'
import { providerToolList } from '../journal/provider-tools.ts'
import type { ModelConfig, ModelConfigs, Models } from './model.ts'
import { modelChoice, resolveChain } from '../journal/model-chain.ts'

const modelConfig: z.ZodType<ModelConfig> = z.strictObject({
  name: z.string().trim().min(1).max(100),
  description: z.string().max(2000).optional(),
  model: modelChoice.optional(),
  engine: z.string().min(1).max(200).optional(),
  temperature: z.number().min(0).max(2).optional(),
  maxTokens: z.number().int().positive().optional(),
  providerOptions: providerOptions.optional(),
  providerTools: providerToolList.optional(),
  systemPrompt: z.string().max(100_000).optional(),
  tools: z.array(z.string().min(1).max(200)).max(500).optional(),
})

const configFile = z.union([z.array(modelConfig).min(1), z.object({ configs: z.array(modelConfig).min(1) })])

export const defaultConfigName = 'default'

/** If the list is empty, there is one empty configuration called `default`. */
export function modelConfigsOf(given: readonly ModelConfig[]): ModelConfigs {
  const first: ModelConfig = given[0] ?? { name: defaultConfigName }
  const configs = given.length === 0 ? [first] : given
  const byName = new Map(configs.map((config) => [config.name, config]))
  return {
    list: () => configs,
    get(name) {
      if (name === undefined) return byName.get(defaultConfigName) ?? first
      const config = byName.get(name)
      if (config === undefined) {
        const names = configs.map((known) => known.name)
        throw new AppError(
          'unknown_config',
          `There is no configuration ${JSON.stringify(name)}; known are ${names.join(', ')}.`,
          {
            details: { configs: names },
          },
        )
      }
      return config
    },
  }
}

/** Throws for every mistake in the file, which stops the start-up. */
export async function readModelConfigs(file: string | null, models: Pick<Models, 'resolve'>): Promise<ModelConfigs> {
  if (file === null) return modelConfigsOf([])
  const refuse = (what: string, cause?: unknown) =>
    new AppError('config_invalid', `POLYLOG_MODEL_CONFIGS: ${file} ${what}`, { cause })
  let value: unknown
  try {
    value = JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw refuse(error instanceof SyntaxError ? `is not valid JSON: ${error.message}.` : 'cannot be read.', error)
  }
  const parsed = configFile.safeParse(value)
  if (!parsed.success) throw refuse(`does not fit: ${firstProblem(value, parsed.error)}.`)
  const configs = Array.isArray(parsed.data) ? parsed.data : parsed.data.configs
  const problem = problemOf(configs, models)
  if (problem !== null) throw refuse(problem)
  return modelConfigsOf(configs)
}

/** The sets of a configuration in code, by name. Throws `config_invalid`. */
export function parseModelSets(value: unknown): ModelConfig[] {
  const parsed = z.record(z.string(), z.unknown()).safeParse(value)
  const refuse = (sentence: string) => new AppError('config_invalid', sentence)
  if (!parsed.success) throw refuse('models must hold an object of model settings for each name.')
  return Object.entries(parsed.data).map(([name, set]) => {
    const config = z.record(z.string(), z.unknown()).safeParse(set)
    const checked = modelConfig.safeParse({ ...config.data, name })
    if (checked.success && config.success) return checked.data
    const issue = checked.error?.issues[0]
    throw refuse(`The set ${JSON.stringify(name)} of models does not fit: ${issueSentence(issue)}.`)
  })
}

/** Throws `config_invalid` if a set names a model that cannot be used. */
export function checkedModelSets(sets: readonly ModelConfig[], models: Pick<Models, 'resolve'>): ModelConfigs {
  const problem = problemOf(sets, models)
  if (problem !== null) throw new AppError('config_invalid', `The configuration ${problem}`)
  return modelConfigsOf(sets)
}

function problemOf(configs: readonly ModelConfig[], models: Pick<Models, 'resolve'>): string | null {
  const seen = new Set<string>()
  for (const { name, model } of configs) {
    if (seen.has(name)) return `has two sets called ${JSON.stringify(name)}; names must differ.`
    seen.add(name)
    if (model === undefined) continue
    try {
      resolveChain(model, models)
    } catch (error) {
      return `has a set ${JSON.stringify(name)} that cannot be used: ${(error as Error).message}`
    }
  }
  return null
}

/** A union reports the errors of both shapes; this picks those of the shape that the file uses. */
function firstProblem(value: unknown, error: z.ZodError): string {
  const meant = Array.isArray(value) ? z.array(modelConfig).min(1) : z.object({ configs: z.array(modelConfig).min(1) })
  const issue = meant.safeParse(value).error?.issues[0] ?? error.issues[0]
  return issueSentence(issue)
}

function issueSentence(issue: { path: PropertyKey[]; message: string } | undefined): string {
  return `${issue?.path.join('.') ?? ''} ${issue?.message ?? 'it must be an object'}`.trim()
}
