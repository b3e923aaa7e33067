// The routes that `useChat` of the AI SDK uses: send, resume and stop, for version 6 and later under
// /v1/ui/chat and for version 5 under /v1/ui/v5/chat. A request with answers to approval requests, or
// with results of tools of the client, gets the rest of the run that asked.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { beginning } from '../../dialects/cursor.ts'
import { uiMessageDialect } from '../../dialects/ui-message/ui-message.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { takeAnswers } from '../client-answers.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders } from '../start-or-resume.ts'
import { startAndStreamChat, streamRun } from '../stream-run.ts'
import { conversationHeader, stoppedView } from '../views.ts'
import { lastResumedAt } from '../parked-runs.ts'
import { questionMeant } from './stored-question.ts'
import { answersIn, nothingToDo, toUiStartRequest, uiChatBody } from './ui-chat-body.ts'

const chatParams = z.object({ conversationId: idParam })

export function uiChatRoutes(server: Server, services: Services): void {
  routesFor(server, services, '/v1/ui/chat', 6)
  routesFor(server, services, '/v1/ui/v5/chat', 5)
}

function routesFor(server: Server, services: Services, path: string, sdk: 5 | 6): void {
  const { runs, conversations, journal } = services
  const dialect = uiMessageDialect({ sdk })
  const client = sdk === 5 ? 'AI SDK 5' : 'AI SDK 6 and later'

  server.post(
    path,
    {
      schema: {
        tags: ['AI SDK'],
        summary: `Send a message of useChat (${client})`,
        description:
          'Starts a run and streams it. If the last message answers approval requests or has results of your tools, they are stored, and the stream is the rest of the run that asked. A new question cancels a run that waits for such an answer. A message that replaces an earlier one, and another answer to an earlier question, replace everything after it. Closing the connection does not stop the run.',
        querystring: userIdQuery,
        headers: startHeaders,
        body: uiChatBody,
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
      const caller = callerOf(request, services)
      const answers = answersIn(request.body, sdk)
      if (answers !== undefined) {
        const conversation = await conversations.get(caller.userId, request.body.id)
        const answered = await takeAnswers(services, caller, conversation.id, answers)
        if (answered === undefined) throw nothingToDo()
        const { run, cursor, lastAnswered } = answered
        // If the run still waits, the stream ends again: the client sends nothing while one is open.
        const rest = lastAnswered === undefined ? dialect : uiMessageDialect({ sdk, endsAtAnswer: lastAnswered })
        const headers = conversationHeader(run.conversationId)
        return await streamRun(services, request, reply, { run, cursor, dialect: rest, headers })
      }
      const key = request.headers['idempotency-key']
      const idempotency = key === undefined ? null : { key, route: `POST ${path}`, body: request.body }
      const conversation = await conversations.find(caller.userId, request.body.id)
      const open = conversation === undefined ? [] : await conversations.openRuns(conversation)
      const awaited = open.filter(({ status }) => status === 'waiting_user')
      const questionId =
        conversation === undefined ? undefined : await questionMeant(services, conversation, request.body)
      const start = await toUiStartRequest(request.body, {
        owner: caller.userId,
        files: services.files,
        idempotency,
        isStored: conversation !== undefined,
        isAwaited: awaited.length > 0,
        questionId,
      })
      // Answers are replaced, so the run that waits has to end before.
      if (questionId !== undefined && start.whenBusy === 'cancel')
        await Promise.all(awaited.map(({ owner, id }) => runs.cancel(owner, id, 'replaced by another answer')))
      const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
      return await startAndStreamChat(services, request, reply, { start, dialect, headersOf })
    },
  )

  server.get(
    `${path}/:conversationId/stream`,
    {
      schema: {
        tags: ['AI SDK'],
        summary: `Resume the stream of a chat (${client})`,
        description: 'Replays the newest run of the chat from its beginning and follows it. 204 if no run is open.',
        params: chatParams,
        querystring: userIdQuery,
        response: { 204: z.null().describe('No run is open.') },
      },
    },
    async (request, reply) => {
      const run = (await openRunsOf(request)).at(-1)
      if (run === undefined) return reply.code(204).send(null)
      // A decision that is stored counts, also if the run has not gone on yet.
      const isDecided = run.status === 'waiting_user' && (await runs.openInteractions(run)).length === 0
      const decidedUpTo = isDecided ? run.lastSeq : await lastResumedAt(journal, run.id)
      const replay = uiMessageDialect({ sdk, decidedUpTo })
      const headers = conversationHeader(run.conversationId)
      return await streamRun(services, request, reply, { run, dialect: replay, cursor: beginning, headers })
    },
  )

  server.post(
    `${path}/:conversationId/stop`,
    {
      schema: {
        tags: ['AI SDK'],
        summary: `Stop what runs in a chat (${client})`,
        description: 'Cancels every open run of the chat. `stop()` of the client only closes its connection.',
        params: chatParams,
        querystring: userIdQuery,
        body: z.object({ userId: z.string().max(200).nullish() }).nullish(),
        response: { 200: stoppedView },
      },
    },
    async (request) => {
      const open = await openRunsOf(request)
      return await runs.stop(open)
    },
  )

  /** Oldest first. None if the caller has no such conversation. */
  async function openRunsOf(request: FastifyRequest<{ Params: { conversationId: string } }>): Promise<RunRow[]> {
    const { userId } = callerOf(request, services)
    const conversation = await conversations.find(userId, request.params.conversationId)
    return conversation === undefined ? [] : await conversations.openRuns(conversation)
  }
}
