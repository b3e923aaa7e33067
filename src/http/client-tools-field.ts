// The field with which a request brings tools of the client. The limits on number and size are
// checked at acceptance, for all APIs; this schema only bounds what is parsed.

import { z } from 'zod'
import { type ClientTool, clientToolName } from '../journal/client-tool.ts'
import { jsonValue } from './json-value.ts'

/** More tools than a run may have get their own error code; the schema rejects a list above this limit before that. */
const toolsParsedMax = 1000

const toolField = z
  .object({
    name: z.string().regex(clientToolName, 'must be 1 to 64 letters, digits, "_" or "-"'),
    description: z.string().nullish(),
    inputSchema: z.record(z.string(), jsonValue).describe('JSON Schema of the arguments (an object).'),
  })
  .transform(({ name, description, inputSchema }): ClientTool => {
    return { name, ...(description == null ? {} : { description }), inputSchema }
  })

export const clientTools = z
  .array(toolField)
  .max(toolsParsedMax)
  .describe(
    'Tools that your client executes. The run waits at a call of one until you send its result to POST /v1/agent/runs/{runId}/tool-results.',
  )

const namedTool = z
  .object({
    description: z.string().nullish(),
    inputSchema: z.record(z.string(), jsonValue).optional(),
    parameters: z.record(z.string(), jsonValue).optional().describe('The same as inputSchema.'),
  })
  .loose()

/** The tools of a front end of the AI SDK: by name, as its tool sets are, or as a list. */
export const uiTools = z
  .union([
    clientTools,
    z
      .record(z.string().regex(clientToolName), namedTool)
      .refine((tools) => Object.keys(tools).length <= toolsParsedMax, 'has too many tools')
      .transform((tools) =>
        Object.entries(tools).map(([name, { description, inputSchema, parameters }]): ClientTool => {
          const schema = inputSchema ?? parameters ?? {}
          return { name, ...(description == null ? {} : { description }), inputSchema: schema }
        }),
      ),
  ])
  .describe(
    'Tools that your client executes: a list of {name, description, inputSchema}, or an object with the names as keys. inputSchema is a JSON Schema. Their calls reach onToolCall, and addToolOutput sends their results.',
  )
