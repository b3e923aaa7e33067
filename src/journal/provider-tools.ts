// Tools that a provider runs itself while it answers: a web search, reading a page, running code.
// The names are the same for all providers; what a provider calls its tool is known in `models/`.

import { z } from 'zod'
import { providerOptions } from './provider-options.ts'

export const providerToolNames = ['web_search', 'web_fetch', 'code_execution'] as const

export type ProviderToolName = (typeof providerToolNames)[number]

/** `options`: the provider's own options for the tool, by the name of the provider. Only an operator sets them. */
const providerTool = z.strictObject({ name: z.enum(providerToolNames), options: providerOptions.optional() })

export type ProviderTool = z.infer<typeof providerTool>

/** As an agent or a set of model settings has them: names, or names with options. */
export const providerToolList = z
  .array(z.union([z.enum(providerToolNames).transform((name): ProviderTool => ({ name })), providerTool]))
  .max(providerToolNames.length)
  .refine((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, 'must not name a tool twice')

/** As a request has them. */
export const requestedProviderTools = z.array(z.enum(providerToolNames)).max(providerToolNames.length)

/** As the spec of a run has them. A name that this version does not know is kept. */
export const storedProviderTools = z.array(z.object({ name: z.string().min(1), options: providerOptions.optional() }))
