// Settings of a request that only some clients send: how the model chooses its words, and whether it
// has to call a tool. All providers get them under their own names.

import { z } from 'zod'

export const sampling = z.object({
  topP: z.number().min(0).max(1).optional(),
  /** The answer ends before any of these texts. */
  stop: z.array(z.string().min(1).max(500)).max(8).optional(),
  seed: z.number().int().optional(),
  presencePenalty: z.number().min(-2).max(2).optional(),
  frequencyPenalty: z.number().min(-2).max(2).optional(),
})

/** `required`: any tool. It holds for the first step only, because otherwise the run would never end. */
export const toolChoice = z.union([z.literal('required'), z.object({ tool: z.string().min(1) })])

export type Sampling = z.infer<typeof sampling>
export type ToolChoice = z.infer<typeof toolChoice>
