// The trace of a run, by the id of the trace or of one of its messages; and the cancel
// route of the chat API.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { Trace } from '../../dialects/chunks/trace.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { asUser } from '../../kit/caller.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, idParam, type Server, type Services } from '../routes.ts'
import { clientFields, clientOf, clientQuery, optionalIdField, sentenceBody } from './client.ts'
import { readTrace } from './read-trace.ts'

const traceView = z
  .object({
    success: z.literal(true),
    trace: z.object({
      trace_id: z.string(),
      conversation_id: z.string().nullable(),
      message_id: z.string().nullable().describe('The id of the answer; null until the answer is complete.'),
      user_message_id: z.string().nullable(),
      config_id: z.string().nullable(),
      pipeline_name: z.string().nullable(),
      events: z.array(z.looseObject({ type: z.string(), timestamp: z.string() })),
      started_at: z.string().nullable(),
      completed_at: z.string().nullable(),
      status: z.enum(['running', 'completed', 'cancelled', 'error']),
      total_tool_calls: z.number(),
      total_tokens_used: z.number().nullable(),
      total_cost_micro_usd: z
        .number()
        .nullable()
        .describe('In millionths of a US dollar, over the steps whose cost is known; null if there is none.'),
      total_duration_ms: z
        .number()
        .nullable()
        .describe(
          'Null until the run has ended. If the run is part of a comparison, this field, total_tokens_used, total_cost_micro_usd and config_id are null until the vote.',
        ),
      cancelled_by: z.string().nullable(),
      cancellation_reason: z.string().nullable(),
      created_at: z.string().nullable(),
      error: z.object({ code: z.string(), message: z.string() }).nullable(),
    }),
  })
  .meta({ id: 'Trace' })

const traceQuery = clientQuery.extend({
  after: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      'Only events after this number. A long trace comes in pages: the Link header with rel="next" has the address of the next page.',
    ),
})

const cancelReasonDefault = 'cancelled by the client'

export function traceRoutes(server: Server, services: Services): void {
  const { journal, runs, conversations } = services
  const response = { 200: traceView, 400: sentenceBody, 404: sentenceBody }

  server.get(
    '/api/trace/:trace_id',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'What happened while an answer was made',
        params: z.object({ trace_id: idParam }),
        querystring: traceQuery,
        response,
      },
    },
    async (request, reply) => {
      const run = await runs.find(callerOf(request, services), request.params.trace_id)
      if (run === undefined) throw traceNotFound(request.params.trace_id)
      return await viewOf(request, reply, run)
    },
  )

  for (const path of ['/api/trace/by_message/:message_id', '/api/trace/message/:message_id']) {
    server.get(
      path,
      {
        schema: {
          tags: ['Chat API'],
          summary: 'The trace that a message belongs to',
          params: z.object({ message_id: idParam }),
          querystring: traceQuery,
          response,
        },
      },
      async (request, reply) => {
        const { message_id } = request.params
        const message = await conversations.message(callerOf(request, services), message_id)
        const run = message.runId === null ? undefined : await runs.find(asUser(message.owner), message.runId)
        if (run === undefined) throw traceNotFound(message_id)
        return await viewOf(request, reply, run)
      },
    )
  }

  server.post(
    '/api/cancel_stream',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Cancel the answers under way in a conversation, or the answer of one trace',
        description:
          'The reply comes when the answers have stopped, or after 10 seconds: then the cancel requests are stored and no new model or tool call starts. cancelled_count is 0 if there was nothing to cancel.',
        querystring: clientQuery,
        body: z.object({
          ...clientFields,
          conversation_id: optionalIdField,
          trace_id: optionalIdField,
          reason: z.string().max(500).nullish(),
        }),
        response: {
          200: z.object({
            success: z.literal(true),
            cancelled_count: z.number(),
            conversation_id: z.string().nullable(),
            trace_ids: z.array(z.string()),
          }),
          400: sentenceBody,
          404: sentenceBody,
        },
      },
    },
    async (request) => {
      const { conversation_id, trace_id, reason } = request.body
      const open = await runsToCancel(request, conversation_id, trace_id)
      const results = await Promise.all(
        open.map((run) => runs.cancel(run.owner, run.id, reason ?? cancelReasonDefault)),
      )
      const cancelled = results.filter((result) => result.accepted).map((result) => result.run.id)
      return {
        success: true as const,
        cancelled_count: cancelled.length,
        conversation_id: conversation_id ?? shownConversationIdOrNull(results[0]?.run.conversationId ?? null),
        trace_ids: cancelled,
      }
    },
  )

  /** The run of the trace if one is named, else all open runs of the conversation. */
  async function runsToCancel(
    request: FastifyRequest,
    conversationName: string | undefined,
    traceId: string | undefined,
  ): Promise<RunRow[]> {
    if (traceId !== undefined) {
      const run = await runs.find(callerOf(request, services), traceId)
      if (run === undefined) throw traceNotFound(traceId)
      const conversationId = await conversations.idFilter(run.owner, conversationName)
      if (conversationId !== undefined && run.conversationId !== conversationId) throw traceNotFound(traceId)
      return [run]
    }
    if (conversationName === undefined)
      throw new AppError('invalid_request', 'conversation_id missing: send conversation_id or trace_id.')
    return await conversations.openRuns(await conversations.get(clientOf(request, services), conversationName))
  }

  async function viewOf(
    request: FastifyRequest<{ Querystring: { after: number } }>,
    reply: FastifyReply,
    run: RunRow,
  ): Promise<z.infer<typeof traceView>> {
    const undecided = await services.comparisons.isUndecided(run.id)
    const { after } = request.query
    const { trace, more, last } = await readTrace(journal, run.id, { undecided, after })
    if (more) linkNext(request, reply, { after: last })
    return { success: true, trace: withRow(trace, run, undecided) }
  }
}

const statusOfRow: Readonly<Partial<Record<RunRow['status'], Trace['status']>>> = {
  succeeded: 'completed',
  failed: 'error',
  canceled: 'cancelled',
}

/** Fills in fields from the run's row if the first or last event of the run can no longer be read. */
function withRow(trace: Trace, run: RunRow, undecided: boolean): Trace {
  const { endedAt } = run
  const startLost = trace.created_at === null
  const endLost = endedAt !== null && trace.completed_at === null
  if (!startLost && !endLost) return trace
  const failed = run.error ?? { code: 'internal_error', message: 'The run failed.' }
  return {
    ...trace,
    conversation_id: trace.conversation_id ?? shownConversationIdOrNull(run.conversationId),
    pipeline_name: trace.pipeline_name ?? run.agentId,
    started_at: trace.started_at ?? isoTime(run.createdAt),
    created_at: trace.created_at ?? isoTime(run.createdAt),
    completed_at: endedAt === null ? null : isoTime(endedAt),
    status: statusOfRow[run.status] ?? trace.status,
    total_duration_ms: endedAt === null || undecided ? null : Math.max(0, endedAt - run.createdAt),
    error: run.status === 'failed' ? { code: failed.code, message: failed.message } : null,
  }
}

function traceNotFound(id: string): AppError {
  return new AppError('trace_not_found', `There is no trace ${JSON.stringify(id)}.`)
}
