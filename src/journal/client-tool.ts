// A tool of the caller: the request brings its name and its schema, the model may call it, and
// the client executes the call and sends the result. The server never executes it.

import { z } from 'zod'

/** The `source` of a call of such a tool. */
export const clientToolSource = 'client'

/** The names that all providers accept. */
export const clientToolName = /^[a-zA-Z0-9_-]{1,64}$/

export const clientToolsMax = 128

/** For all tools of a run together, as JSON. They are part of every prompt. */
export const clientToolsBytesMax = 256 * 1024

export const clientTool = z.object({
  name: z.string().regex(clientToolName, 'must be 1 to 64 letters, digits, "_" or "-"'),
  description: z.string().optional(),
  /** JSON Schema of the arguments (an object). */
  inputSchema: z.record(z.string(), z.json()),
})

export type ClientTool = z.infer<typeof clientTool>
