// The body of POST /api/chat/stream. Only `message` is required. Without a user id the user
// is that of the login, else `anonymous`. Null means "not given".

import { z } from 'zod'
import { optionalId } from '../routes.ts'

export const sessionBody = z
  .object({
    message: z
      .string()
      .refine((text) => text.trim() !== '', 'message must be a non-empty string')
      .describe('The message of the user.'),
    agentId: z
      .string()
      .nullish()
      .describe('The session to continue. If it is unknown or belongs to another user, a new session starts.'),
    mode: z
      .string()
      .max(50)
      .nullish()
      .describe(
        'edit (the default) allows all tools. ask, or any other value, allows only tools that read. It applies from this request on.',
      ),
    context: z
      .object({
        userId: optionalId().describe('The user; ignored if the request has a login.'),
        workingDir: z
          .string()
          .max(4096)
          .nullish()
          .describe(
            'The directory in which the agent works, inside the workspace of the server; it is created if it is missing. Only the first request of a session can set it. The default is a directory for this session only.',
          ),
        files: z
          .array(z.string().max(4096))
          .max(1000)
          .nullish()
          .describe(
            'The files that the session is about; the model sees the first 20 names. The list applies from this request on.',
          ),
      })
      .loose()
      .nullish(),
    outputsPath: z
      .string()
      .max(4096)
      .nullish()
      .describe('Where the agent should write its output; the model reads this path.'),
    userId: optionalId().describe('The same as context.userId.'),
    consent: z
      .enum(['refuse', 'wait'])
      .nullish()
      .describe(
        'What happens to a tool call that needs the consent of a person. refuse (the default): the model is told that the call is not allowed. wait: the call waits for a decision at /v1/tool-confirmations.',
      ),
    onDisconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What happens to the run when the client closes the connection. The default is the setting of the server (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .meta({ id: 'SessionRequest' })

export type SessionBody = z.infer<typeof sessionBody>
