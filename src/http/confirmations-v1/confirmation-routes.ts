// /v1/tool-confirmations: what waits for a person, and the person's decision
// (CHAT-050). A decision is answered as soon as it is stored; the tool runs
// afterwards, and the row is filled in then.

import { z } from 'zod'
import { AppError, toAppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { InteractionRow, InteractionStatus } from '../../stores/interaction-store.ts'
import type { Caller } from '../../kit/caller.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { type ConfirmationStatus, confirmationStatus, confirmationView, toConfirmation } from '../views.ts'
import { jsonValue } from '../json-value.ts'

const params = z.object({ id: idParam })
const payload = z
  .record(z.string(), jsonValue)
  .nullish()
  .describe('Changes to the arguments, merged over the ones that were shown.')
const userId = z.string().max(200).nullish()
const batchMax = 20
/** A batch above its limit has a code of its own; one far above is not looked at. */
const itemsParsedMax = 1000

/** How the store finds what we show under a status. `failed` is a confirmed call whose tool failed. */
const storedAs: Readonly<Record<ConfirmationStatus, { status: InteractionStatus[]; failed?: boolean }>> = {
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
        summary: 'What waits (or waited) for your decision, newest first',
        querystring: userIdQuery.extend({
          status: optionalFilter().pipe(
            z.enum(['pending', 'confirmed', 'rejected', 'failed', 'expired', 'cancelled']).optional(),
          ),
          conversationId: optionalFilter(),
          runId: optionalFilter(),
          limit: z.coerce.number().int().min(1).max(200).default(100),
          before: optionalFilter().describe('The id of the last confirmation of the page before.'),
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
        ...(status === undefined ? {} : storedAs[status]),
        ...(conversationId === undefined ? {} : { conversationId }),
        ...(runId === undefined ? {} : { runId }),
        ...(before === undefined ? {} : { before }),
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
        summary: 'Let the call run',
        params,
        querystring: userIdQuery,
        body: z.object({ payload, userId }).nullish(),
        response: {
          200: confirmationView,
          400: errorBody,
          404: errorBody,
          409: errorBody.describe('Decided, expired or closed before; details.confirmation is the current state.'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      return toConfirmation(
        await decided(caller, request.params.id, () =>
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
        summary: 'Do not let the call run',
        params,
        querystring: userIdQuery,
        body: z.object({ reason: z.string().max(2000).nullish(), userId }).nullish(),
        response: {
          200: confirmationView,
          404: errorBody,
          409: errorBody.describe('Decided, expired or closed before; details.confirmation is the current state.'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      const reason = request.body?.reason ?? undefined
      return toConfirmation(
        await decided(caller, request.params.id, () => confirmations.reject(caller, request.params.id, reason)),
      )
    },
  )

  server.post(
    '/v1/tool-confirmations/batch/confirm',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Let several calls run',
        querystring: userIdQuery,
        body: z.object({ items: z.array(z.object({ id: idParam, payload })).max(itemsParsedMax), userId }),
        response: { 200: batchView, 400: errorBody },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      return await batch(request.body.items, async (item) =>
        confirmations.confirm(caller, item.id, changesOf(item.payload)),
      )
    },
  )

  server.post(
    '/v1/tool-confirmations/batch/reject',
    {
      schema: {
        tags: ['Tool confirmations'],
        summary: 'Refuse several calls',
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
      return await batch(items, async (item) =>
        confirmations.reject(caller, item.id, item.reason ?? templateReason ?? undefined),
      )
    },
  )

  /** A decision that came too late is answered with the row as it is now. */
  async function decided(caller: Caller, id: string, decide: () => Promise<InteractionRow>): Promise<InteractionRow> {
    try {
      return await decide()
    } catch (error) {
      if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
      const current = toConfirmation(await confirmations.get(caller, id))
      throw new AppError(error.code, error.message, { details: { ...error.details, confirmation: current } })
    }
  }

  async function batch<Item extends { id: string }>(
    items: Item[],
    decide: (item: Item) => Promise<InteractionRow>,
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
