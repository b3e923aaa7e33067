// A choice of models: one, or several of which the next is asked if the one before cannot answer.

import { z } from 'zod'

export type ModelChoice = string | readonly string[]

const chainMax = 5
const name = z.string().min(1).max(200)

export const modelChoice = z.union([name, z.array(name).min(1).max(chainMax)])

/** The `provider/model` of each, without repetitions. Throws `unknown_model` if one of them cannot be used. */
export function resolveChain(
  choice: ModelChoice | undefined,
  models: { resolve(name: string | undefined): string },
): { model: string; fallbackModels: string[] | undefined } {
  const names = choice === undefined || typeof choice === 'string' ? [choice] : choice
  const [model, ...others] = new Set(names.map((one) => models.resolve(one)))
  return { model: model ?? models.resolve(undefined), fallbackModels: others.length === 0 ? undefined : others }
}

/** The first model of a choice, as it was written. */
export function firstChoice(choice: ModelChoice | undefined): string | undefined {
  return typeof choice === 'string' ? choice : choice?.[0]
}
