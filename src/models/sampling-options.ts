// Finds the settings of the sampling among the options of a provider. The adapters of the AI SDK take them
// beside their options, and ignore them there.

import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'

const settings = z.object({
  topP: z.number().optional(),
  topK: z.number().optional(),
  seed: z.number().int().optional(),
  stopSequences: z
    .union([z.string(), z.array(z.string())])
    .transform((texts) => [texts].flat())
    .optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
})

export type SamplingOptions = z.infer<typeof settings>

/** `others`: the options without those settings. Throws `model_error` if a setting has a wrong type. */
export function splitSampling(
  provider: string,
  options: Record<string, JsonValue>,
): { sampling: SamplingOptions; others: Record<string, JsonValue> } {
  const found: Record<string, JsonValue> = {}
  const others: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(options)) {
    const setting = settingOf(name)
    if (setting === undefined) others[name] = value
    else found[setting] = value
  }
  const { data, error } = settings.safeParse(found)
  if (data === undefined) {
    const [issue] = error.issues
    throw new AppError(
      'model_error',
      `The request cannot be sent to ${provider}. It said: ${String(issue?.path[0])}: ${issue?.message}`,
      { details: { provider } },
    )
  }
  return { sampling: data, others }
}

/** The APIs of providers write `top_p`, the AI SDK `topP`. */
function settingOf(name: string): string | undefined {
  const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const setting = camel === 'stop' ? 'stopSequences' : camel
  return Object.hasOwn(settings.shape, setting) ? setting : undefined
}
