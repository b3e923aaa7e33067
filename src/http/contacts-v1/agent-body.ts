// The body of requests that run an agent about one conversation or contact. It may be absent.

import { z } from 'zod'
import type { AgentOptions } from '../../contacts/agent-runner.ts'
import { optionalId } from '../routes.ts'

export const agentBody = z
  .object({
    language: optionalId().describe('The language of the result, as a language tag: zh (default), en, …'),
    options: z
      .object({
        useCache: z
          .boolean()
          .nullish()
          .describe('Default true. False: no stored result is used, and the result is not stored as a snapshot.'),
        forceRefresh: z.boolean().nullish().describe('Default false. True: the agent runs again.'),
      })
      .nullish(),
    userId: z.string().max(200).nullish(),
  })
  .nullish()

export function agentOptionsOf(body: z.infer<typeof agentBody>): AgentOptions {
  return {
    language: body?.language,
    useCache: body?.options?.useCache ?? true,
    forceRefresh: body?.options?.forceRefresh ?? false,
  }
}
