// POST /v1/agent/chat: starts a run and streams it (CHAT-030).

import { z } from 'zod'
import { beginning } from '../../dialects/dialect.ts'
import { AppError } from '../../errors/app-error.ts'
import { fingerprint } from '../../runs/run-acceptance.ts'
import type { RunRow } from '../../stores/store.ts'
import { checkCursor, cursorOf } from '../cursor.ts'
import { dialectNamed } from '../formats.ts'
import { callerOf, errorBody, type Server, type Services } from '../routes.ts'
import { chatBody, chatRouteName, toStartRequest } from './chat-request.ts'

const headers = z
  .object({
    'idempotency-key': z.string().min(1).max(200).optional().describe('The same key and body attach to the same run.'),
    'last-event-id': z.string().optional().describe('Together with Idempotency-Key: go on after this frame.'),
  })
  .loose()

export function chatRoute(server: Server, services: Services): void {
  const { runs, streams, store, settings } = services
  server.post(
    '/v1/agent/chat',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Chat with an agent, as a stream',
        description:
          'Starts a run and streams it. The run and its input are stored before the first byte. Closing the connection does not stop the run: come back with GET /v1/agent/runs/{runId}/stream.',
        querystring: z.object({
          format: z.string().optional().describe('sse (default) or vercel-ai'),
          userId: z.string().max(200).optional(),
        }),
        headers,
        body: chatBody,
        response: { 204: z.null().describe('You have all of the run already.'), 400: errorBody, 404: errorBody, 409: errorBody, 413: errorBody, 429: errorBody, 503: errorBody },
      },
    },
    async (request, reply) => {
      const dialect = dialectNamed(request.query.format)
      const { userId } = callerOf(request, services)
      const key = request.headers['idempotency-key']
      const lastEventId = request.headers['last-event-id']
      const start = toStartRequest(request.body, userId, key, request.body)

      let run: RunRow
      let cursor = beginning
      let started = false
      if (lastEventId !== undefined && lastEventId !== '') {
        run = await runToResume(key)
        cursor = cursorOf(lastEventId, undefined)
        if (await checkCursor(cursor, run, dialect, store)) return reply.code(204).send(null)
      } else {
        const result = await runs.start(start)
        run = result.run
        started = result.outcome === 'accepted'
      }
      await streams.reply(reply, {
        run,
        dialect,
        cursor,
        keepAliveMs: settings.pingMs,
        ...(run.conversationId === null ? {} : { headers: { 'x-conversation-id': encodeURIComponent(run.conversationId) } }),
        ...(started && start.onDisconnect === 'cancel'
          ? { onGone: () => void runs.requestCancel(run.id, userId, 'the client disconnected').catch((error: unknown) => request.log.error({ err: error }, 'cancel on disconnect failed')) }
          : {}),
      })
      return reply

      /** A POST that says where it stopped never starts anything. */
      async function runToResume(idempotencyKey: string | undefined): Promise<RunRow> {
        if (idempotencyKey === undefined) {
          throw new AppError('resume_by_post', 'A POST cannot resume a stream by itself. Use GET /v1/agent/runs/{runId}/stream with Last-Event-ID, or send the Idempotency-Key of the first request.')
        }
        const found = await runs.findStarted(userId, { key: idempotencyKey, route: chatRouteName, fingerprint: fingerprint(request.body) })
        if (found === undefined) throw new AppError('run_not_found', 'No run was started with this Idempotency-Key; send the request without Last-Event-ID to start one.')
        return found
      }
    },
  )
}
