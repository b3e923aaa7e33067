// POST /v1/agent/chat: starts a run and streams it in the dialect that `?format=` names.

import { z } from 'zod'
import type { RunRow } from '../../stores/run-store.ts'
import { dialectNamed, formatNames } from '../formats.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders } from '../start-or-resume.ts'
import { startAndStreamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { chatBody, toStartRequest } from './chat-request.ts'

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
      const { userId } = callerOf(request, services)
      const start = await toStartRequest(
        services,
        request.body,
        userId,
        request.headers['idempotency-key'],
        request.body,
      )
      const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
      return await startAndStreamRun(services, request, reply, { start, dialect, headersOf })
    },
  )
}
