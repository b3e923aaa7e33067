// The body of POST /api/chat/stream. Just `{message}` is enough; whoever is logged in,
// or nobody, is the user then. Null means "not given", as clients write it.

import { z } from 'zod'
import { optionalId } from '../routes.ts'

export const sessionBody = z
  .object({
    message: z
      .string()
      .refine((text) => text.trim() !== '', 'message must be a non-empty string')
      .describe('What the user says.'),
    agentId: z
      .string()
      .nullish()
      .describe('The session to continue. One that is not known, or not yours, starts a new one.'),
    mode: z
      .string()
      .max(50)
      .nullish()
      .describe(
        'edit (the default): all tools. ask, and anything else: tools that only read. Counts from the request that brings it.',
      ),
    context: z
      .object({
        userId: optionalId().describe('Counts only where nobody is logged in.'),
        workingDir: z
          .string()
          .max(4096)
          .nullish()
          .describe(
            'Where the agent works, inside the workspace of the server; made where it is missing. Counts in the first request of a session. Nothing: a directory of its own.',
          ),
        files: z
          .array(z.string().max(4096))
          .max(1000)
          .nullish()
          .describe(
            'Files that the session is about; the model is told of the first 20. Counts from the request that brings them.',
          ),
      })
      .loose()
      .nullish(),
    outputsPath: z.string().max(4096).nullish().describe('Where the agent is to put what it makes; the model is told.'),
    userId: optionalId().describe('The same as context.userId.'),
    consent: z
      .enum(['refuse', 'wait'])
      .nullish()
      .describe(
        'What happens to a tool call that needs the consent of a person. refuse (the default): it is answered as not allowed. wait: it waits for a decision at /v1/tool-confirmations.',
      ),
    onDisconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What closing the connection means for the run: continue or cancel. Nothing: as the server is set up (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .meta({ id: 'SessionRequest' })

export type SessionBody = z.infer<typeof sessionBody>
