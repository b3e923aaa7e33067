// POST /v1/agent/chat: starts a run and streams it (CHAT-030).

import { z } from 'zod'
import { cancelsOnDisconnect, goneOption } from '../disconnect.ts'
import { dialectNamed, keepAliveMsOf } from '../formats.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders, startOrResume } from '../start-or-resume.ts'
import { conversationHeader } from '../views.ts'
import { chatBody, toStartRequest } from './chat-request.ts'

export function chatRoute(server: Server, services: Services): void {
  const { streams, settings } = services
  server.post(
    '/v1/agent/chat',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Chat with an agent, as a stream',
        description:
          'Starts a run and streams it. The run and its input are stored before the first byte. Closing the connection does not stop the run: come back with GET /v1/agent/runs/{runId}/stream.',
        querystring: userIdQuery.extend({
          format: z.string().optional().describe('sse (default), vercel-ai, chunks, chunks-ndjson, fcmp or session'),
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
      const start = toStartRequest(request.body, userId, request.headers['idempotency-key'], request.body)
      const found = await startOrResume(services, request.headers, start, dialect)
      if (found === null) return reply.code(204).send(null)
      const { run, cursor, started } = found
      await streams.reply(reply, {
        run,
        dialect,
        cursor,
        keepAliveMs: keepAliveMsOf(dialect, settings),
        headers: conversationHeader(run.conversationId),
        ...goneOption(services, request.log, cancelsOnDisconnect(services, start, started), [run]),
      })
      return reply
    },
  )
}
