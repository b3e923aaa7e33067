// POST /v1/chat/completions: an answer of an agent in the form of OpenAI's Chat Completions, as a stream
// or as one object. The request has the whole history, so its run belongs to no conversation unless
// the request names one.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { beginning, type Cursor } from '../../dialects/cursor.ts'
import { CompletionBuilder } from '../../dialects/openai-chat/completion.ts'
import { openAiChatDialect } from '../../dialects/openai-chat/openai-chat.ts'
import type { OpenAiError } from '../../dialects/openai-chat/openai-error.ts'
import { AppError } from '../../errors/app-error.ts'
import { type ErrorCode, errorCodes } from '../../errors/codes.ts'
import type { Caller } from '../../kit/caller.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { callerOf, type Server, type Services, userIdQuery } from '../routes.ts'
import { type StartedRun, refuseResume, startHeaders } from '../start-or-resume.ts'
import { startAndStreamRun, streamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { answerRun, findAnsweredRun, isAnswerable } from './answered-calls.ts'
import {
  chatAnswers,
  type ChatCompletionBody,
  chatCompletionBody,
  checkChatFields,
  requestFingerprint,
  toChatStart,
} from './chat-completion-body.ts'
import { followAnswer } from './follow-answer.ts'
import { openAiHooks, requestId } from './openai-reply.ts'

const withUsage = openAiChatDialect({ usage: true })
const withoutUsage = openAiChatDialect({ usage: false })

const chatCompletionView = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.number(),
    model: z.string(),
    choices: z.array(z.unknown()),
    usage: z.unknown().optional(),
    polylog: z.array(z.unknown()).optional().describe('The tool calls of the server; other clients ignore it.'),
  })
  .meta({ id: 'ChatCompletion' })

export const openAiErrorView = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string(),
    }),
  })
  .meta({ id: 'OpenAiError' })

export function chatCompletionRoutes(server: Server, services: Services): void {
  server.post(
    '/v1/chat/completions',
    {
      ...openAiHooks(services),
      schema: {
        tags: ['OpenAI'],
        summary: 'Chat Completions of OpenAI',
        description:
          'Answers with one object, or with a stream of chunks if `stream` is true. `messages` is the history; nothing else is remembered, unless `metadata.conversation_id` names a stored conversation.',
        querystring: userIdQuery,
        headers: startHeaders,
        body: chatCompletionBody,
        response: {
          200: chatCompletionView,
          400: openAiErrorView,
          404: openAiErrorView,
          409: openAiErrorView,
          413: openAiErrorView,
          429: openAiErrorView,
          502: openAiErrorView,
          503: openAiErrorView,
        },
      },
    },
    async (request, reply) => {
      const { body } = request
      checkChatFields(body)
      const caller = callerOf(request, services)
      const dialect = body.stream_options?.include_usage === true ? withUsage : withoutUsage
      const answered = await continued(caller, body)
      if (answered !== undefined) {
        const { run, cursor } = answered
        if (body.stream !== true) return await replyWhole(request, reply, run, cursor, false)
        return await streamRun(services, request, reply, { run, dialect, cursor, headers: headersFor(run) })
      }
      const start = await toChatStart(body, caller.userId, request.headers['idempotency-key'], services)
      if (body.stream === true) {
        const resumable = { ...start, begin: () => begin(start) }
        return await startAndStreamRun(services, request, reply, { start: resumable, dialect, headersOf: headersFor })
      }
      refuseResume(request.headers)
      const { run, started } = await begin(start)
      return await replyWhole(request, reply, run, beginning, cancelsOnDisconnect(services, start, started))
    },
  )

  /**
   * The run that waits for the tool results at the end of the messages. Undefined if there is none, or if the request asks
   * for something else than that run does: then the messages are the history of a new run.
   */
  async function continued(
    caller: Caller,
    body: ChatCompletionBody,
  ): Promise<{ run: RunRow; cursor: Cursor } | undefined> {
    const found = await findAnsweredRun(services, caller, chatAnswers(body))
    if (found === undefined || found.run.family !== 'openai-chat') return undefined
    const { run } = found
    const { events } = await services.journal.readEvents(run.id, 0, 1)
    const echo = events[0]?.type === 'run.accepted' ? (events[0].data.echo ?? {}) : {}
    const count = typeof echo['messages'] === 'number' ? echo['messages'] : 0
    if (echo['fingerprint'] === requestFingerprint(body, count) && isAnswerable(found)) {
      return { run, cursor: { seq: await answerRun(services, caller, found), index: null } }
    }
    // The client continues in a new run. Nobody would read the answer of this one.
    const waits = found.rows.some(({ status }) => status === 'pending')
    if (waits) await services.runs.requestCancel(run.id, run.owner, 'continued by another request')
    return undefined
  }

  async function begin(start: StartRequest): Promise<StartedRun> {
    const { runs } = services
    const { run, outcome } = await (start.conversationId === undefined
      ? runs.startStandaloneChat(start)
      : runs.start(start))
    return { run, started: outcome === 'accepted' }
  }

  async function replyWhole(
    request: FastifyRequest,
    reply: FastifyReply,
    run: RunRow,
    after: Cursor,
    cancels: boolean,
  ): Promise<FastifyReply> {
    const builder = new CompletionBuilder()
    reply.headers(headersFor(run))
    await followAnswer(services, request, reply, { run, dialect: withUsage, after, cancels }, (frame) =>
      builder.add(frame),
    )
    const result = builder.result()
    if (result === undefined) throw new AppError('internal_error', 'The completion has no end.')
    if ('error' in result) throw runError(result.error, run)
    return reply.send(result.completion)
  }

  function headersFor(run: RunRow): Record<string, string> {
    const id = requestId(services.ids)
    return { 'x-run-id': run.id, 'x-request-id': id, ...conversationHeader(run.conversationId) }
  }
}

/** The error of a run that has not succeeded. */
export function runError({ code, message }: Pick<OpenAiError, 'code' | 'message'>, run: RunRow): AppError {
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'internal_error'
  return new AppError(known, message, { details: { runId: run.id } })
}
