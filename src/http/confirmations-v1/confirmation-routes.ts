// /v1/tool-confirmations: lists the tool calls that wait for a person, and takes the
// decision. The reply comes as soon as the decision is stored; the tool runs afterwards,
// and its result is added to the row then.

import { z } from 'zod'
import { AppError, toAppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { InteractionRow, InteractionStatus } from '../../stores/interaction-store.ts'
import type { Caller } from '../../kit/caller.ts'
import { defined } from '../../kit/defined.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { type ConfirmationStatus, confirmationStatus, confirmationView, toConfirmation } from '../views.ts'
import { jsonValue } from '../json-value.ts'

const params = z.object({ id: idParam })
const payload = z
  .record(z.string(), jsonValue)
  .nullish()
  .describe(
    'Changes to the arguments; they are merged over the arguments that were shown. For a question of a remote agent, the answer: {"answer": …}, or an object with the fields that were asked for.',
  )
const userId = z.string().max(200).nullish()
const batchMax = 20
/** A batch above `batchMax` gets its own error code; the schema rejects one above this limit before that. */
const itemsParsedMax = 1000

/** The filter in the store for each status that clients see. `failed` is a confirmed call whose tool failed. */
const storeFilters: Readonly<Record<ConfirmationStatus, { status: InteractionStatus[]; failed?: boolean }>> = {
  pending: { status: ['pending'] },
  confirmed: { status: ['confirmed', 'replied', 'auto_decided'], failed: false },
  failed: { status: ['confirmed'], failed: true },
  rejected: { status: ['rejected'] },
  expired: { status: ['expired'] },
  cancelled: { status: ['closed'] },
}

const batchView = z.object({
  total: z.number(),
  succeeded: z.number(),
  failed: z.number(),
  items: z.array(
    z.object({
      id: z.string(),
      success: z.boolean(),
      status: z.string().optional(),
      code: z.string().optional(),
      message: z.string().optional(),
    }),
  ),
})

export function confirmationRoutes(server: Server, services: Services): void {
  const { confirmations } = services

  server.get(
    '/v1/tool-confirmations',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Tool calls that wait, or waited, for your decision; newest first',
        querystring: userIdQuery.extend({
          status: optionalFilter().pipe(
            z.enum(['pending', 'confirmed', 'rejected', 'failed', 'expired', 'cancelled']).optional(),
          ),
          conversationId: optionalFilter(),
          runId: optionalFilter(),
          limit: z.coerce.number().int().min(1).max(200).default(100),
          before: optionalFilter().describe('The id of the last confirmation on the previous page.'),
        }),
        response: { 200: z.array(confirmationView), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { status, runId, limit, before } = request.query
      const owner = callerOf(request, services).userId
      const conversationId = await services.conversations.idFilter(owner, request.query.conversationId)
      if (conversationId === null) return []
      const { rows, more } = await confirmations.list(owner, {
        limit,
        ...(status === undefined ? {} : storeFilters[status]),
        ...defined({ conversationId, runId, before }),
      })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      return rows.map(toConfirmation)
    },
  )

  server.get(
    '/v1/tool-confirmations/:id',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'One confirmation',
        params,
        querystring: userIdQuery,
        response: { 200: confirmationView, 404: errorBody },
      },
    },
    async (request) => {
      return toConfirmation(await confirmations.get(callerOf(request, services), request.params.id))
    },
  )

  server.post(
    '/v1/tool-confirmations/:id/confirm',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Confirm a tool call, so that it runs, or answer a question',
        params,
        querystring: userIdQuery,
        body: z.object({ payload, userId }).nullish(),
        response: {
          200: confirmationView,
          400: errorBody,
          404: errorBody,
          409: errorBody.describe('Already decided, expired or closed; details.confirmation is the current state.'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      return toConfirmation(
        await decideOrConflict(caller, request.params.id, () =>
          confirmations.confirm(caller, request.params.id, changesOf(request.body?.payload)),
        ),
      )
    },
  )

  server.post(
    '/v1/tool-confirmations/:id/reject',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Reject a tool call',
        params,
        querystring: userIdQuery,
        body: z.object({ reason: z.string().max(2000).nullish(), userId }).nullish(),
        response: {
          200: confirmationView,
          404: errorBody,
          409: errorBody.describe('Already decided, expired or closed; details.confirmation is the current state.'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      const reason = request.body?.reason ?? undefined
      return toConfirmation(
        await decideOrConflict(caller, request.params.id, () =>
          confirmations.reject(caller, request.params.id, reason),
        ),
      )
    },
  )

  server.post(
    '/v1/tool-confirmations/batch/confirm',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Confirm several tool calls',
        querystring: userIdQuery,
        body: z.object({ items: z.array(z.object({ id: idParam, payload })).max(itemsParsedMax), userId }),
        response: { 200: batchView, 400: errorBody },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      return await decideBatch(request.body.items, async (item) =>
        confirmations.confirm(caller, item.id, changesOf(item.payload)),
      )
    },
  )

  server.post(
    '/v1/tool-confirmations/batch/reject',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Reject several tool calls',
        querystring: userIdQuery,
        body: z.object({
          templateReason: z.string().max(2000).nullish(),
          items: z.array(z.object({ id: idParam, reason: z.string().max(2000).nullish() })).max(itemsParsedMax),
          userId,
        }),
        response: { 200: batchView, 400: errorBody },
      },
    },
    async (request) => {
      const { items, templateReason } = request.body
      const caller = callerOf(request, services)
      return await decideBatch(items, async (item) =>
        confirmations.reject(caller, item.id, item.reason ?? templateReason ?? undefined),
      )
    },
  )

  /** Runs `decide`. If another decision came first, the error has the current row in its details. */
  async function decideOrConflict(
    caller: Caller,
    id: string,
    decide: () => Promise<InteractionRow>,
  ): Promise<InteractionRow> {
    try {
      return await decide()
    } catch (error) {
      if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
      const current = toConfirmation(await confirmations.get(caller, id))
      throw new AppError(error.code, error.message, { details: { ...error.details, confirmation: current } })
    }
  }

  async function decideBatch<Decision extends { id: string }>(
    items: Decision[],
    decide: (item: Decision) => Promise<InteractionRow>,
  ): Promise<z.infer<typeof batchView>> {
    if (items.length === 0) throw new AppError('empty_batch_items', 'items is empty; send 1 to 20 of them.')
    if (items.length > batchMax)
      throw new AppError('batch_size_exceeded', `items holds ${items.length}; send at most ${batchMax} at once.`)
    const results: z.infer<typeof batchView>['items'] = []
    for (const item of items) {
      try {
        const row = await decide(item)
        results.push({ id: item.id, success: true, status: confirmationStatus(row) })
      } catch (error) {
        const { code, message } = toAppError(error)
        results.push({ id: item.id, success: false, code, message })
      }
    }
    const succeeded = results.filter((result) => result.success).length
    return { total: results.length, succeeded, failed: results.length - succeeded, items: results }
  }
}

function changesOf(given: Record<string, JsonValue> | null | undefined): Record<string, JsonValue> | undefined {
  return given ?? undefined
}
