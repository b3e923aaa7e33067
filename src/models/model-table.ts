// What is known about models: prices, context windows and abilities. The data is in
// models.json; a file of the operator adds models to it or replaces entries.

import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { Usage } from '../journal/event.ts'
import type { ModelFacts, ModelPrice, ModelTable } from './model.ts'
import builtIn from './models.json' with { type: 'json' }

const dollars = z.number().min(0).max(100_000)
const tokens = z.number().int().positive().max(1_000_000_000)
const prices = { input: dollars, cached: dollars.optional(), cacheWrite: dollars.optional(), output: dollars }
const ability = z.boolean().nullable().default(null)

export const modelFacts: z.ZodType<ModelFacts, { [Fact in keyof ModelFacts]?: ModelFacts[Fact] | undefined }> =
  z.strictObject({
    contextTokens: tokens.nullable().default(null),
    maxOutputTokens: tokens.nullable().default(null),
    vision: ability,
    pdf: ability,
    reasoning: ability,
    structuredOutput: ability,
    price: z
      .strictObject({ ...prices, above: z.strictObject({ inputTokens: tokens, ...prices }).optional() })
      .nullable()
      .default(null),
  })

const tableFile = z.strictObject({
  /** The day on which the prices were taken. */
  asOf: z.iso.date(),
  models: z
    .record(z.string(), modelFacts)
    .refine((models) => Object.keys(models).every((name) => /^[^/]+\/.+/.test(name)), {
      message: 'has a name without a provider; a model is called provider/model',
    }),
})

/** The dates and aliases at the end of a version's name: `-2024-08-06`, `-20250929`, `@20250929`, `-latest`. */
const versionSuffix = /(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$/

/** Throws `config_invalid` if the operator's file cannot be read or does not fit. */
export async function readModelTable(
  file: string | null,
  /** Facts of named providers, by `provider/model`. The file of the operator wins. */
  more: Record<string, ModelFacts> = {},
): Promise<ModelTable> {
  if (file === null) return modelTableOf({ asOf: builtIn.asOf, models: { ...builtIn.models, ...more } })
  let own: unknown
  try {
    own = JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    const what = error instanceof SyntaxError ? `is not valid JSON: ${error.message}.` : 'cannot be read.'
    throw new AppError('config_invalid', `POLYLOG_MODEL_TABLE: ${file} ${what}`, { cause: error })
  }
  const parsed = tableFile.safeParse(own)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new AppError(
      'config_invalid',
      `POLYLOG_MODEL_TABLE: ${file} does not fit: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.`,
    )
  }
  return modelTableOf({ asOf: parsed.data.asOf, models: { ...builtIn.models, ...more, ...parsed.data.models } })
}

export function modelTableOf(data: unknown): ModelTable {
  const { asOf, models } = tableFile.parse(data)
  const table = new Map(Object.entries(models))
  const find = (model: string): ModelFacts | undefined =>
    table.get(model) ?? table.get(model.replace(versionSuffix, ''))
  return {
    asOf,
    find,
    costOf(model, usage) {
      const price = find(model)?.price
      return price === null || price === undefined ? undefined : costOf(price, usage)
    },
    names: () => [...table.keys()],
  }
}

function costOf(price: NonNullable<ModelFacts['price']>, usage: Usage | undefined): number | undefined {
  const { inputTokens, cachedTokens = 0, cacheWriteTokens = 0, outputTokens } = usage ?? {}
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const { above } = price
  const rate: ModelPrice = above !== undefined && inputTokens > above.inputTokens ? above : price
  const plain = Math.max(0, inputTokens - cachedTokens - cacheWriteTokens)
  // Dollars for a million tokens are millionths of a dollar for one. In whole millionths of that, the sum has no rounding errors.
  const fine =
    plain * perToken(rate.input) +
    cachedTokens * perToken(rate.cached ?? rate.input) +
    cacheWriteTokens * perToken(rate.cacheWrite ?? rate.input) +
    outputTokens * perToken(rate.output)
  return Math.ceil(fine / 1_000_000)
}

function perToken(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * 1_000_000)
}
