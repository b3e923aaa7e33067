// The sums of token counts and cost, as every route of the /v1 family shows them.

import { z } from 'zod'
import type { UsageTotals } from '../journal/usage.ts'

export const usageView: z.ZodType<UsageTotals> = z
  .object({
    steps: z.number().describe('How many requests to a model were answered.'),
    inputTokens: z.number().describe('Includes cachedTokens and cacheWriteTokens.'),
    cachedTokens: z.number().describe('Read from the provider’s prompt cache.'),
    cacheWriteTokens: z.number().describe('Written to the provider’s prompt cache.'),
    outputTokens: z.number().describe('Includes reasoningTokens.'),
    reasoningTokens: z.number(),
    costMicroUsd: z
      .number()
      .nullable()
      .describe('In millionths of a US dollar, over the steps whose cost is known; null if there is none.'),
    unpricedSteps: z.number().describe('Steps whose cost is not known.'),
  })
  .meta({ id: 'Usage' })
