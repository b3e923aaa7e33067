// /v1/responses: OpenAI's Responses API. A response is a run, or the part of a run between two waits for
// its client, so it can be read, streamed again, cancelled and continued like any other run.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { addressSpelling, type Cursor } from '../../dialects/cursor.ts'
import { openAiResponsesDialect } from '../../dialects/openai-responses/openai-responses.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Caller } from '../../kit/caller.ts'
import { defined } from '../../kit/defined.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { requestedCursor } from '../cursor.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { callerOf, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { type StartedRun, refuseResume, type ResumableStart, startedBy, startHeaders } from '../start-or-resume.ts'
import { startAndStreamRun, sendEmptyStream, streamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { answerRun } from './answered-calls.ts'
import { type AnsweredResponse, findAnsweredResponse, historyAfter } from './answered-response.ts'
import { openAiErrorView, runError } from './chat-completion-routes.ts'
import { followAnswer } from './follow-answer.ts'
import { inputItems } from './input-items.ts'
import { withReferencedItems } from './item-references.ts'
import { openAiHooks, requestId } from './openai-reply.ts'
import {
  checkResponseFields,
  idempotencyOf,
  type ResponseBody,
  responseBody,
  toResponseStart,
} from './response-body.ts'
import { readInput, type ReadInput } from './response-input.ts'
import {
  cursorInResponse,
  findResponse,
  readResponse,
  responseFamily,
  type ResponsePlace,
  responsesUpTo,
} from './stored-response.ts'

const dialect = openAiResponsesDialect

const responseView = z
  .object({
    id: z.string(),
    object: z.literal('response'),
    created_at: z.number(),
    status: z.enum(['queued', 'in_progress', 'completed', 'failed', 'incomplete', 'cancelled']),
    model: z.string(),
    output: z.array(z.unknown()),
  })
  .loose()
  .meta({ id: 'Response' })

const params = z.object({ responseId: idParam })

const failures = {
  400: openAiErrorView,
  404: openAiErrorView,
  409: openAiErrorView,
  413: openAiErrorView,
  429: openAiErrorView,
  502: openAiErrorView,
  503: openAiErrorView,
}

/** Empty is "not given", as for other cursors. */
const sequenceNumber = z
  .string()
  .regex(/^\d{0,15}$/, 'must be the sequence_number of an event')
  .transform((text) => (text === '' ? undefined : Number(text)))

/** A boolean in a query string. */
const flag = z.enum(['true', 'false']).optional()

export function responseRoutes(server: Server, services: Services): void {
  const { runs } = services
  const hooks = openAiHooks(services)

  server.post(
    '/v1/responses',
    {
      ...hooks,
      schema: {
        tags: ['OpenAI'],
        summary: 'Create a response (OpenAI)',
        description:
          'Answers with the response when it has ended, at once if `background` is true, or with a stream if `stream` is true. A request with the results of calls continues the response that asked for them.',
        querystring: userIdQuery,
        headers: startHeaders,
        body: responseBody,
        response: { 200: responseView, ...failures },
      },
    },
    async (request, reply) => {
      const { body } = request
      checkResponseFields(body)
      const caller = callerOf(request, services)
      const input = readInput(await withReferencedItems(services, caller, body.input))
      const answered = await findAnsweredResponse(services, caller, body, input)
      if (answered !== undefined && answered.changed === undefined) {
        return await replyContinued(request, reply, body, await continuedResponse(caller, answered))
      }
      if (body.stream !== true) refuseResume(request.headers)
      const start = await toStart(caller, body, input, request.headers['idempotency-key'], answered)
      if (body.stream === true)
        return await startAndStreamRun(services, request, reply, { start, dialect, headersOf: headersFor })
      const { run, started } = await start.begin()
      if (body.background === true) return await replyNow(reply, { run, index: 0 })
      const cancels = cancelsOnDisconnect(services, start, started)
      return await replyWhole(request, reply, run, { seq: 0, index: null }, cancels)
    },
  )

  server.get(
    '/v1/responses/:responseId',
    {
      ...hooks,
      schema: {
        tags: ['OpenAI'],
        summary: 'Read a response (OpenAI)',
        description:
          'With stream=true: the events of the response from the beginning, or after the sequence_number starting_after or the frame Last-Event-ID, then live; if both are sent, the later one is used. A run of any API can be read as the response `resp_{runId}`.',
        params,
        querystring: userIdQuery.extend({
          stream: flag,
          starting_after: sequenceNumber.optional(),
        }),
        response: {
          200: responseView,
          204: z.null().describe('Last-Event-ID is the last frame of the response.'),
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const place = await placeOf(request)
      if (request.query.stream !== 'true') return await replyNow(reply, place)
      // Refuses a response that the run has not come to.
      await readResponse(services, place)
      const lastEventId = requestedCursor(addressSpelling, request.headers['last-event-id'])
      const after = { ...defined({ number: request.query.starting_after }), frame: lastEventId }
      const { cursor, isAtEnd } = await cursorInResponse(services, place, after)
      const { run } = place
      // An EventSource reconnects on its own and stops only when it gets 204.
      if (isAtEnd && lastEventId.seq > 0) return reply.code(204).send(null)
      if (isAtEnd) return await sendEmptyStream(reply, headersFor(run))
      return await streamRun(services, request, reply, { run, dialect, cursor, headers: headersFor(run) })
    },
  )

  server.post(
    '/v1/responses/:responseId/cancel',
    {
      ...hooks,
      schema: {
        tags: ['OpenAI'],
        summary: 'Cancel a response (OpenAI)',
        description: 'Also works for a response that is not in the background, and for one that has ended.',
        params,
        querystring: userIdQuery,
        body: z
          .object({ userId: z.string().max(200).nullish() })
          .loose()
          .nullish(),
        response: { 200: responseView, ...failures },
      },
    },
    async (request, reply) => {
      const { run, index } = await placeOf(request)
      const { run: cancelled } = await runs.cancel(run.owner, run.id, null)
      return await replyNow(reply, { run: cancelled, index })
    },
  )

  server.delete(
    '/v1/responses/:responseId',
    {
      ...hooks,
      schema: {
        tags: ['OpenAI'],
        summary: 'Delete a response (OpenAI)',
        description: 'Removes the whole run, after cancelling it. Messages of a stored conversation stay.',
        params,
        querystring: userIdQuery,
        response: {
          200: z.object({ id: z.string(), object: z.literal('response'), deleted: z.boolean() }),
          ...failures,
        },
      },
    },
    async (request) => {
      const { run } = await placeOf(request)
      if (run.family !== responseFamily) {
        throw new AppError(
          'response_not_found',
          'The run was started by another API, so it cannot be deleted as a response; delete its conversation.',
        )
      }
      await runs.remove(run)
      return { id: request.params.responseId, object: 'response' as const, deleted: true }
    },
  )

  server.get(
    '/v1/responses/:responseId/input_items',
    {
      ...hooks,
      schema: {
        tags: ['OpenAI'],
        summary: 'The input of a response (OpenAI)',
        params,
        querystring: userIdQuery.extend({
          limit: z.coerce.number().int().min(1).max(100).default(20),
          order: z.enum(['asc', 'desc']).default('desc'),
          after: idParam.optional().describe('The id of the last item on the previous page.'),
        }),
        response: {
          200: z.object({
            object: z.literal('list'),
            data: z.array(z.unknown()),
            first_id: z.string().nullable(),
            last_id: z.string().nullable(),
            has_more: z.boolean(),
          }),
          ...failures,
        },
      },
    },
    async (request) => {
      const place = await placeOf(request)
      const { limit, order, after } = request.query
      const all = await inputItems(services, place)
      if (order === 'desc') all.reverse()
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1
      if (after !== undefined && from === 0)
        throw new AppError(
          'unknown_cursor',
          'after: the response has no such item; send the id of the last one you got.',
        )
      const data = all.slice(from, from + limit)
      return {
        object: 'list' as const,
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: from + limit < all.length,
      }
    },
  )

  async function placeOf(request: FastifyRequest<{ Params: z.infer<typeof params> }>): Promise<ResponsePlace> {
    return await findResponse(services, callerOf(request, services), request.params.responseId)
  }

  /** The new run. `left` is the one that it goes on from, because the request has other settings. */
  async function toStart(
    caller: Caller,
    body: ResponseBody,
    input: ReadInput,
    idempotencyKey: string | undefined,
    left: AnsweredResponse | undefined,
  ): Promise<ResumableStart> {
    const owner = caller.userId
    if (left !== undefined) {
      const idempotency = idempotencyOf(body, idempotencyKey)
      // Looked up first: the run that was left does not wait any more.
      const run = idempotency === null ? undefined : await runs.findStarted(owner, startedBy(idempotency))
      if (run !== undefined) return { owner, idempotency, begin: async () => ({ run, started: false }) }
    }
    const history =
      left === undefined
        ? { messages: input.messages, before: await historyFor(caller, body) }
        : await historyAfter(services, body, input, left)
    const start = await toResponseStart(body, owner, { ...history, idempotencyKey }, services)
    if (left?.waits === true) await runs.cancel(left.run.owner, left.run.id, 'continued by another request')
    return { ...start, begin: () => begin(start) }
  }

  async function begin(start: StartRequest): Promise<StartedRun> {
    const { run, outcome } = await (start.conversationId === undefined
      ? runs.startStandaloneChat(start)
      : runs.start(start))
    return { run, started: outcome === 'accepted' }
  }

  /** The messages up to the response that the request continues. */
  async function historyFor(caller: Caller, { previous_response_id: id }: ResponseBody): Promise<EarlierMessage[]> {
    if (id == null) return []
    const { run } = await findResponse(services, caller, id)
    if (run.endedAt !== null) return await runs.transcript(run)
    const waiting = await runs.openInteractions(run)
    const param = { details: { param: 'previous_response_id' } }
    if (waiting.length > 0) {
      const names = waiting.map((row) => JSON.stringify(row.id)).join(', ')
      throw new AppError(
        'messages_invalid',
        `The response waits for the results of ${names}; send them as input.`,
        param,
      )
    }
    throw new AppError('conversation_busy', 'The previous response has not ended. Wait for it, or cancel it.', param)
  }

  /** The response that begins with the results. */
  async function continuedResponse(
    caller: Caller,
    answered: AnsweredResponse,
  ): Promise<ResponsePlace & { cursor: Cursor }> {
    const { run } = answered
    const seq = await answerRun(services, caller, answered)
    return { run, index: await responsesUpTo(services.journal, run.id, seq), cursor: { seq, index: null } }
  }

  async function replyContinued(
    request: FastifyRequest,
    reply: FastifyReply,
    body: ResponseBody,
    { run, index, cursor }: ResponsePlace & { cursor: Cursor },
  ): Promise<FastifyReply> {
    if (body.stream === true)
      return await streamRun(services, request, reply, { run, dialect, cursor, headers: headersFor(run) })
    if (body.background === true) return await replyNow(reply, { run, index })
    return await replyWhole(request, reply, run, cursor, false)
  }

  async function replyNow(reply: FastifyReply, place: ResponsePlace): Promise<FastifyReply> {
    reply.headers(headersFor(place.run))
    return reply.send(await readResponse(services, place))
  }

  async function replyWhole(
    request: FastifyRequest,
    reply: FastifyReply,
    run: RunRow,
    after: Cursor,
    cancels: boolean,
  ): Promise<FastifyReply> {
    reply.headers(headersFor(run))
    const { ended } = await followAnswer(services, request, reply, { run, dialect, after, cancels }, () => undefined)
    if (ended === null) throw new AppError('internal_error', 'The response has no end.')
    if (ended.status === 'failed') throw runError(ended['error'] as ResponseError, run)
    return reply.send(ended)
  }

  function headersFor(run: RunRow): Record<string, string> {
    const id = requestId(services.ids)
    return { 'x-run-id': run.id, 'x-request-id': id, ...conversationHeader(run.conversationId) }
  }
}

type ResponseError = { code: string; message: string }
