// POST /v1/agent/chat: starts a run and streams it in the dialect that `?format=` names.

import { z } from 'zod'
import { vercelDataDialect } from '../../dialects/vercel-data/vercel-data.ts'
import type { Caller } from '../../kit/caller.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { type TakenAnswers, takeAnswers } from '../client-answers.ts'
import { dialectNamed, formatNames } from '../formats.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders } from '../start-or-resume.ts'
import { startAndStreamChat, streamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { type ChatBody, chatBody, toStartRequest } from './chat-request.ts'
import { toolResultsIn, withChatId } from './data-stream-chat.ts'

export function chatRoute(server: Server, services: Services): void {
  server.post(
    '/v1/agent/chat',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Chat with an agent, as a stream',
        description:
          'Starts a run and streams it. The run and its input are stored before the first byte. By default, closing the connection does not stop the run: attach again with GET /v1/agent/runs/{runId}/stream.',
        querystring: userIdQuery.extend({
          format: z.string().optional().describe(formatNames),
        }),
        headers: startHeaders,
        body: chatBody,
        response: {
          204: z.null().describe('You have all of the run already.'),
          400: errorBody,
          404: errorBody,
          409: errorBody,
          413: errorBody,
          429: errorBody,
          503: errorBody,
        },
      },
    },
    async (request, reply) => {
      const dialect = dialectNamed(request.query.format)
      const caller = callerOf(request, services)
      const isDataStream = dialect.name === vercelDataDialect.name
      const body = isDataStream ? withChatId(request.body) : request.body
      const answered = isDataStream ? await takeResults(caller, body) : undefined
      if (answered !== undefined) {
        const { run, cursor } = answered
        const headers = conversationHeader(run.conversationId)
        return await streamRun(services, request, reply, { run, cursor, dialect, headers })
      }
      const key = request.headers['idempotency-key']
      const start = await toStartRequest(services, body, caller.userId, key, request.body)
      const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
      return await startAndStreamChat(services, request, reply, { start, dialect, headersOf })
    },
  )

  /** The run that goes on with the results of the client's tools; undefined if the request asks something new. */
  async function takeResults(caller: Caller, body: ChatBody): Promise<TakenAnswers | undefined> {
    const results = toolResultsIn(body)
    const name = body.conversationId ?? body.sessionId
    if (results.length === 0 || name === undefined) return undefined
    const conversation = await services.conversations.find(caller.userId, name)
    return conversation === undefined
      ? undefined
      : await takeAnswers(services, caller, conversation.id, { approvals: [], results })
  }
}
