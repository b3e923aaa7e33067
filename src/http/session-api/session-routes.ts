// POST /api/chat/stream: sends one message in a session and streams the answer. GET /health:
// the public health check of this API; it must not reveal anything about a user.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { sessionDialect } from '../../dialects/session/session.ts'
import { defined } from '../../kit/defined.ts'
import { fingerprint } from '../../runs/run-acceptance.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { Caller } from '../../kit/caller.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { callerOf, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders } from '../start-or-resume.ts'
import { startAndStreamChat } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { type SessionBody, sessionBody } from './session-body.ts'
import { type Session, sessionFamily, sessionOf } from './sessions.ts'

const failure = z
  .object({ error: z.string(), message: z.string() })
  .meta({ id: 'SessionError', description: 'An error: a code, and a sentence that explains it.' })
const route = 'POST /api/chat/stream'

export function sessionRoutes(server: Server, services: Services): void {
  const { runs, health, clock } = services

  server.post(
    '/api/chat/stream',
    {
      schema: {
        tags: ['Session API'],
        summary: 'Send a message in a session, and get the answer as a stream',
        description:
          'Frames: start, heartbeat, text, tool_use, tool_result, tool_error, error, done. The first frame has the id of the session (agentId); send it in the next request to continue. By default, closing the connection does not stop the answer: the header X-Run-Id names the run for GET /v1/agent/runs/{runId}/stream?format=session.',
        querystring: userIdQuery,
        headers: startHeaders,
        body: sessionBody,
        response: {
          204: z.null().describe('You already have the whole answer.'),
          400: failure,
          401: failure,
          404: failure,
          409: failure,
          413: failure,
          429: failure,
          503: failure,
        },
      },
    },
    async (request, reply) => {
      const caller = sessionCaller(request, request.body, services)
      const key = request.headers['idempotency-key']
      const idempotency = key === undefined ? null : { key, route, body: request.body }
      // A repeated request must find the run of the first one before sessionOf creates another session.
      const startedBefore =
        idempotency === null
          ? undefined
          : await runs.findStarted(caller.userId, {
              key: idempotency.key,
              route,
              fingerprint: fingerprint(request.body),
            })
      const start: StartRequest =
        startedBefore === undefined
          ? { ...toStart(request.body, caller.userId, await sessionOf(request.body, caller, services)), idempotency }
          : {
              owner: caller.userId,
              family: sessionFamily,
              input: request.body.message,
              earlier: [],
              whenBusy: 'queue',
              idempotency,
            }
      const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
      return await startAndStreamChat(services, request, reply, { start, dialect: sessionDialect, headersOf })
    },
  )

  server.get(
    '/health',
    {
      schema: {
        tags: ['Session API'],
        summary: 'Is the server ready, and how many sessions are there?',
        response: {
          200: z.object({
            status: z.literal('ok'),
            service: z.string(),
            timestamp: z.number(),
            conversations: z.object({
              total: z.number(),
              active: z.number().describe('Sessions with a run that has not ended.'),
            }),
          }),
        },
      },
    },
    async () => {
      await health.check()
      const conversations = await services.conversations.count('agt-')
      return { status: 'ok' as const, service: 'polylog', timestamp: clock.now(), conversations }
    },
  )
}

/** Clients of this API may name the user in `context`, too. In other families `context` is application data. */
function sessionCaller(request: FastifyRequest, { context }: SessionBody, services: Services): Caller {
  const caller = callerOf(request, services)
  return caller.named ? caller : callerOf({ login: null, claimed: { userId: context?.userId } }, services)
}

function toStart(body: SessionBody, owner: string, session: Session): Omit<StartRequest, 'idempotency'> {
  const outputsPath = body.outputsPath?.trim() ?? ''
  return {
    owner,
    family: sessionFamily,
    input: body.message,
    earlier: [],
    ...(session.isNew ? { newConversationId: session.agentId } : { conversationId: session.agentId }),
    workspace: session.workspace,
    ...defined({ directoryNode: session.directoryNode }),
    // Only information for the model; `workspace` decides what the run may do.
    context: {
      mode: session.workspace.mode,
      workingDir: session.workingDir,
      ...(session.files.length === 0 ? {} : { files: session.files }),
      ...(outputsPath === '' ? {} : { outputsPath }),
    },
    whenBusy: 'queue',
    ...(body.consent === 'wait' ? {} : { consent: 'refuse' }),
    ...(body.onDisconnect == null ? {} : { onDisconnect: body.onDisconnect }),
  }
}
