// The routes that `useChat` of the AI SDK uses: send, resume and stop, for version 6 and later under
// /v1/ui/chat and for version 5 under /v1/ui/v5/chat. A request with answers to approval requests
// decides them, and its stream is the rest of the run that asked.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { beginning } from '../../dialects/cursor.ts'
import { uiMessageDialect } from '../../dialects/ui-message/ui-message.ts'
import { AppError } from '../../errors/app-error.ts'
import { eventPages } from '../../journal/event-pages.ts'
import type { RunEvent } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { startHeaders } from '../start-or-resume.ts'
import { startAndStreamRun, streamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { type ApprovalAnswer, approvalAnswers, toUiStartRequest, uiChatBody } from './ui-chat-body.ts'

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
          'Starts a run and streams it. If the last message answers approval requests, they are decided, and the stream is the rest of the run that asked. Closing the connection does not stop the run.',
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
      const answers = approvalAnswers(request.body)
      if (answers.length > 0) {
        const { run, seq } = await decide(caller, request.body.id, answers)
        const headers = conversationHeader(run.conversationId)
        return await streamRun(services, request, reply, { run, dialect, cursor: { seq, index: null }, headers })
      }
      const key = request.headers['idempotency-key']
      const idempotency = key === undefined ? null : { key, route: `POST ${path}`, body: request.body }
      const isStored = (await conversations.find(caller.userId, request.body.id)) !== undefined
      const start = toUiStartRequest(request.body, caller.userId, idempotency, isStored)
      const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
      return await startAndStreamRun(services, request, reply, { start, dialect, headersOf })
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
      const decidedUpTo = await lastSeqOf(run, isTakenUpAgain)
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
        response: { 200: z.object({ stopped: z.array(z.string()).describe('The ids of the runs.') }) },
      },
    },
    async (request) => {
      const open = await openRunsOf(request)
      await Promise.all(open.map(({ owner, id }) => runs.cancel(owner, id, null)))
      return { stopped: open.map(({ id }) => id) }
    },
  )

  /** Oldest first. None if the caller has no such conversation. */
  async function openRunsOf(request: FastifyRequest<{ Params: { conversationId: string } }>): Promise<RunRow[]> {
    const { userId } = callerOf(request, services)
    const conversation = await conversations.find(userId, request.params.conversationId)
    return conversation === undefined ? [] : await conversations.openRuns(conversation)
  }

  /**
   * Stores the decisions and returns the run that asked, with the event after which its stream goes on. A decision that
   * was made before stays as it is: the stream tells the client which one counts.
   */
  async function decide(
    caller: Caller,
    chatId: string,
    answers: readonly ApprovalAnswer[],
  ): Promise<{ run: RunRow; seq: number }> {
    const { confirmations } = services
    const conversation = await conversations.get(caller.userId, chatId)
    const rows = await Promise.all(answers.map(({ id }) => confirmations.get(caller, id)))
    const [first] = rows
    const wrong = rows.find((row) => row.conversationId !== conversation.id || row.runId !== first?.runId)
    if (first === undefined || wrong !== undefined) {
      throw new AppError(
        'tool_confirmation_not_found',
        `The chat has no approval request ${JSON.stringify(wrong?.id ?? '')} in its last run.`,
      )
    }
    const run = await runs.get(caller, first.runId)
    const asked = new Set(answers.map(({ id }) => id))
    const seq = await seqOfQuestion(run, asked)
    for (const { id, approved, reason } of answers) {
      try {
        if (approved) await confirmations.confirm(caller, id, undefined)
        else await confirmations.reject(caller, id, reason)
      } catch (error) {
        if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
      }
    }
    return { run, seq }
  }

  /** The event at which the stream with these questions ended; the newest question if the run did not wait. */
  async function seqOfQuestion(run: RunRow, asked: ReadonlySet<string>): Promise<number> {
    let question = 0
    for await (const { events } of eventPages(journal, run.id)) {
      for (const event of events) {
        if (event.type === 'input.required' && asked.has(event.data.interactionId)) question = event.seq
        if (question > 0 && isParked(event)) return event.seq
      }
    }
    return question
  }

  async function lastSeqOf(run: RunRow, matches: (event: RunEvent) => boolean): Promise<number> {
    let seq = 0
    for await (const { events } of eventPages(journal, run.id)) seq = events.findLast(matches)?.seq ?? seq
    return seq
  }
}

function isParked(event: RunEvent): boolean {
  return event.type === 'run.state' && event.data.to === 'waiting_user'
}

/** The person has decided, and the run goes on. */
function isTakenUpAgain(event: RunEvent): boolean {
  return event.type === 'run.state' && event.data.from === 'waiting_user'
}
