// Options that are passed to a provider by name, such as its effort of reasoning or its service
// tier: `{ anthropic: { thinking: … }, openai: { reasoningEffort: 'high' } }`. They come from an
// agent, a model configuration and a request, and are part of the spec of a run.

import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import { isDeeperThan } from '../kit/json-depth.ts'

const charsMax = 16 * 1024
const depthMax = 8

export type ProviderOptions = Record<string, Record<string, z.infer<z.ZodJSONSchema>>>

/** Values are not checked to be JSON here, because the description of the API has no form for that; they come from JSON. */
export const providerOptions = z
  .record(z.string().regex(/^[a-z][a-zA-Z0-9-]{0,63}$/), z.record(z.string().min(1).max(100), z.unknown()))
  .refine(
    (options) => {
      const text = JSON.stringify(options)
      return text.length <= charsMax && !isDeeperThan(text, depthMax)
    },
    `must be at most ${charsMax / 1024} KiB of JSON with at most ${depthMax} levels`,
  )
  .meta({ id: 'ProviderOptions' }) as unknown as z.ZodType<ProviderOptions, ProviderOptions>

/**
 * Options that only the operator may set, in an agent or a model configuration: they name objects that the provider stored
 * for anyone with the same key, servers that the provider calls, or make the provider store what the user says.
 */
const operatorOnly: Record<string, readonly string[]> = {
  openai: ['store', 'previousResponseId', 'conversation', 'background'],
  anthropic: ['container', 'mcpServers'],
  google: ['cachedContent'],
}

/** Throws `provider_options_invalid` if the options of a request cannot be used. `providers` are the names of this server. */
export function checkRequestedOptions(options: ProviderOptions | undefined, providers: readonly string[]): void {
  for (const [provider, values] of Object.entries(options ?? {})) {
    if (!providers.includes(provider)) {
      throw new AppError(
        'provider_options_invalid',
        `providerOptions names the provider ${JSON.stringify(provider)}; the providers are ${providers.join(', ')}.`,
        { details: { providers: [...providers] } },
      )
    }
    const refused = Object.keys(values).find((name) => operatorOnly[provider]?.includes(name))
    if (refused !== undefined) {
      throw new AppError(
        'provider_options_invalid',
        `providerOptions.${provider}.${refused} can be set only in an agent or a model configuration. Leave it out.`,
        { details: { option: `${provider}.${refused}` } },
      )
    }
  }
}

/** Later sets override the single options of earlier ones. Undefined if no set has any. */
export function mergedOptions(...sets: (ProviderOptions | undefined)[]): ProviderOptions | undefined {
  const merged: ProviderOptions = {}
  for (const set of sets) {
    for (const [provider, values] of Object.entries(set ?? {})) merged[provider] = { ...merged[provider], ...values }
  }
  return Object.keys(merged).length === 0 ? undefined : merged
}
