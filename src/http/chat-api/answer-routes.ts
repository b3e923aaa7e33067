// POST /api/get_chat_response and /api/get_chat_response_stream: ask a question, and get
// the answer whole or as a stream. Both start the same run. The stream sends the ids of the
// conversation and the trace as headers, so a client can cancel before the first frame.

import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { encodeJson, type Framing } from '../../dialects/chunks/chunks.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { AppError } from '../../errors/app-error.ts'
import { cancelledStatus, statusOfErrorCode } from '../../errors/status.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import type { Server, Services } from '../routes.ts'
import { refuseResume, startHeaders } from '../start-or-resume.ts'
import { startAndStreamChat } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { messagesMax, answerText } from './answers.ts'
import { type QuestionBody, questionBody, dialectFor, framingFor, toStart } from './chat-body.ts'
import { clientOf, clientQuery, sentenceBody } from './client.ts'
import { readTrace } from './read-trace.ts'

const failures = {
  400: sentenceBody,
  404: sentenceBody,
  408: sentenceBody,
  409: sentenceBody,
  413: sentenceBody,
  429: sentenceBody,
  503: sentenceBody,
}
const failedAnswer = sentenceBody.extend({
  conversation_id: z.string().nullable().optional(),
  trace_id: z.string().optional(),
})

const answerView = z
  .object({
    response: z.string(),
    conversation_id: z.string().nullable(),
    message_id: z.string().nullable(),
    trace_id: z.string(),
    server_response_msg_ts: z.number().describe('When the run ended, in epoch seconds.'),
    final_response_msg_ts: z.number().describe('When the server sent the reply, in epoch seconds.'),
  })
  .meta({ id: 'Answer' })

const waitingView = z.object({
  status: z.literal('awaiting_input'),
  conversation_id: z.string().nullable(),
  trace_id: z.string(),
  confirmations: z.array(
    z.object({ confirmation_id: z.string(), tool_name: z.string().nullable(), prompt: z.string() }),
  ),
})

export function answerRoutes(server: Server, services: Services): void {
  const { runs, streams, journal, clock } = services

  server.post(
    '/api/get_chat_response_stream',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Ask, and get the answer as a stream',
        description:
          'Frames: tool_start, tool_output, tool_end, chunk, error, done. They come as SSE, or as one JSON object per line for Accept: application/x-ndjson. By default, closing the connection does not stop the answer: attach again with GET /v1/agent/runs/{trace_id}/stream?format=chunks. If the conversation does not exist or belongs to somebody else, no run is started, and the only frame is an error with status 403.',
        querystring: clientQuery,
        headers: startHeaders,
        body: questionBody,
        response: { 204: z.null().describe('You already have the whole answer.'), ...failures },
      },
    },
    async (request, reply) => {
      const owner = clientOf(request, services)
      const dialect = dialectFor(request.body, request.headers.accept)
      const start = withKey(
        toStart(request.body, owner, services),
        request.headers['idempotency-key'],
        request.body,
        'POST /api/get_chat_response_stream',
      )
      try {
        return await startAndStreamChat(services, request, reply, { start, dialect, headersOf: idHeaders })
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'conversation_not_found') throw error
        return await sendRefusal(reply, error, dialect, framingFor(request.headers.accept))
      }
    },
  )

  server.post(
    '/api/get_chat_response',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Ask, and get the whole answer at once',
        description:
          '202 if a person has to confirm a tool call first. The run continues after the decision; read it with GET /api/trace/{trace_id}.',
        querystring: clientQuery,
        headers: startHeaders,
        body: questionBody,
        response: {
          200: answerView,
          202: waitingView,
          ...failures,
          499: failedAnswer,
          500: failedAnswer,
          502: failedAnswer,
          504: failedAnswer,
        },
      },
    },
    async (request, reply) => {
      const owner = clientOf(request, services)
      const start = withKey(
        toStart(request.body, owner, services),
        request.headers['idempotency-key'],
        request.body,
        'POST /api/get_chat_response',
      )
      refuseResume(request.headers)
      const { run, outcome } = await runs.start(start)
      const gone = new AbortController()
      // The client may have disconnected while the run was being accepted.
      if (reply.raw.destroyed) gone.abort()
      reply.raw.on('close', () => gone.abort())
      const settled = await runs.settled(run, {
        signal: AbortSignal.any([gone.signal, streams.ending]),
        orWaiting: true,
      })
      if (gone.signal.aborted && cancelsOnDisconnect(services, start, outcome === 'accepted'))
        await runs.clientLeft(run.id, owner)
      for (const [name, value] of Object.entries(idHeaders(run))) reply.header(name, value)
      return await sendWhole(reply, settled)
    },
  )

  async function sendWhole(reply: FastifyReply, run: RunRow): Promise<FastifyReply> {
    const ids = { conversation_id: shownConversationIdOrNull(run.conversationId), trace_id: run.id }
    switch (run.status) {
      case 'succeeded': {
        const { message_id } = (await readTrace(journal, run.id)).trace
        const rows = await services.conversations.messagesOfRun(run, messagesMax)
        return reply.send({
          response: answerText(rows),
          ...ids,
          message_id,
          server_response_msg_ts: (run.endedAt ?? clock.now()) / 1000,
          final_response_msg_ts: clock.now() / 1000,
        })
      }
      case 'failed': {
        const error = run.error ?? { code: 'internal_error', message: 'The run failed.' }
        return reply.code(statusOfErrorCode(error.code)).send({ error: error.message, code: error.code, ...ids })
      }
      case 'canceled':
        return reply.code(cancelledStatus).send({ error: 'The answer was cancelled.', code: 'cancelled', ...ids })
      case 'waiting_user': {
        const open = await services.confirmations.openOf(run)
        const confirmations = open.map((row) => ({
          confirmation_id: row.id,
          tool_name: row.toolName,
          prompt: row.prompt,
        }))
        return reply.code(202).send({ status: 'awaiting_input', ...ids, confirmations })
      }
      default:
        throw new AppError('shutting_down', 'The answer is not complete yet and goes on; ask for its trace later.')
    }
  }
}

/** The clients of this family show an error of the stream, and no error page, if the conversation is not theirs. */
async function sendRefusal(
  reply: FastifyReply,
  { message, code }: AppError,
  { headers }: Dialect,
  framing: Framing,
): Promise<FastifyReply> {
  const json = JSON.stringify({ type: 'error', status: 403, message, code })
  return await reply.headers(headers).send(encodeJson(framing, null, json))
}

function withKey(
  start: Omit<StartRequest, 'idempotency'>,
  key: string | undefined,
  body: QuestionBody,
  route: string,
): StartRequest {
  return { ...start, idempotency: key === undefined ? null : { key, route, body } }
}

function idHeaders(run: RunRow): Record<string, string> {
  return { 'x-trace-id': run.id, ...conversationHeader(run.conversationId) }
}
