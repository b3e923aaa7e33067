// POST /v1/agent/run: runs an agent once and answers with its result, or streams the run if
// the client asks for a stream. The run goes on if the client disconnects.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { chatAgentId } from '../../agents/catalogue.ts'
import { AppError } from '../../errors/app-error.ts'
import type { OneShotIdempotency, OneShotRequest } from '../../one-shot/one-shot-service.ts'
import { claimsOf, namesUser } from '../caller.ts'
import { dialectNamed, formatNames } from '../formats.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { type StartedRun, startHeaders } from '../start-or-resume.ts'
import { refuseSettings, refuseStraySettings } from '../stray-settings.ts'
import { startAndStreamRun } from '../stream-run.ts'
import { requestSignal } from '../request-signal.ts'
import { chatOnce } from './chat-once.ts'
import { chatSettings } from './chat-request.ts'
import {
  type RunAgentBody,
  runAgentBody,
  runAgentOptions,
  runAgentView,
  toOneShotRequest,
  toRunAgentView,
} from './run-agent-body.ts'

/** The scope of an idempotency key is one owner and this route. */
const routeName = 'POST /v1/agent/run'

export function runAgentRoute(server: Server, services: Services): void {
  const { oneShot, streams } = services
  server.post(
    '/v1/agent/run',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Run an agent once',
        description:
          'Answers with the result as JSON. With Accept: text/event-stream, or with ?format=, streams the run instead; if a stored result answers the request, the stream replays the run that produced it.',
        querystring: userIdQuery.extend({ format: z.string().optional().describe(formatNames) }),
        headers: startHeaders,
        body: runAgentBody,
        response: {
          200: runAgentView,
          204: z.null().describe('You have all of the stream already.'),
          400: errorBody,
          404: errorBody,
          409: errorBody,
          413: errorBody,
          429: errorBody,
          502: errorBody,
          503: errorBody,
          504: errorBody,
        },
      },
    },
    async (request, reply) => {
      const { body } = request
      checkSettings(body)
      // The input may name the user, too; the body and the query come first.
      if (!namesUser(request.claimed)) request.claimed = claimsOf(body.input)
      const key = request.headers['idempotency-key']
      const idempotency = key === undefined ? null : { key, route: routeName, body }
      const wanted = toOneShotRequest(body)
      if (body.agentId === chatAgentId) {
        oneShot.checkOperation(body.agentId, wanted.operation)
        return await chatOnce(services, request, reply, { body, idempotency, streams: wantsStream(request) })
      }
      if (wantsStream(request)) return await streamAgent(request, reply, wanted, idempotency)
      if (request.headers['last-event-id'])
        throw new AppError('resume_by_post', 'Only a stream can be resumed; send Accept: text/event-stream, too.')
      const awaited = requestSignal(reply, streams)
      return toRunAgentView(await oneShot.run(callerOf(request, services), wanted, idempotency, awaited))
    },
  )

  async function streamAgent(
    request: FastifyRequest<{ Querystring: { format?: string | undefined } }> & { body: RunAgentBody },
    reply: FastifyReply,
    wanted: OneShotRequest,
    idempotency: OneShotIdempotency,
  ): Promise<FastifyReply> {
    const dialect = dialectNamed(request.query.format)
    const who = callerOf(request, services)
    let cached = false
    const begin = async (): Promise<StartedRun> => {
      const found = await oneShot.start(who, wanted, idempotency)
      cached = found.cached
      if (found.run !== undefined) return { run: found.run, started: false }
      // The run that produced the stored result was removed, so there is nothing to replay: the agent runs again.
      cached = false
      const { run } = await oneShot.start(who, { ...wanted, forceRefresh: true }, idempotency)
      if (run === undefined) throw new AppError('internal_error', 'A forced run was answered without a run.')
      return { run, started: false }
    }
    return await startAndStreamRun(services, request, reply, {
      // `started` is always false, because the result is stored and may be shared: nobody's disconnect cancels it.
      start: { owner: who.userId, idempotency, begin },
      dialect,
      headersOf: () => ({ 'x-cached': String(cached) }),
    })
  }
}

/** Throws `unsupported_parameter` for settings that would have no effect. */
function checkSettings(body: RunAgentBody): void {
  refuseSettings(body, ['clientTools'], 'This API does not wait for results of client tools; use POST /v1/agent/chat.')
  const advice =
    body.agentId === chatAgentId
      ? 'Send it in input.'
      : 'The agent decides it; change its definition, or chat with it through POST /v1/agent/chat.'
  refuseSettings(body, chatSettings, advice)
  refuseStraySettings(body, Object.keys(runAgentBody.shape), [...chatSettings, 'options'])
  const options = Object.keys(runAgentOptions.shape)
  refuseStraySettings(body.options ?? {}, options, options)
}

function wantsStream({
  headers,
  query,
}: Pick<FastifyRequest<{ Querystring: { format?: string | undefined } }>, 'headers' | 'query'>): boolean {
  return (query.format ?? '') !== '' || /\btext\/event-stream\b/i.test(headers.accept ?? '')
}
