// /v1/conversations: create, list, get, rename and delete conversations, and list the
// messages of one.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import { linkNext } from '../next-link.ts'
import {
  callerOf,
  errorBody,
  idParam,
  optionalFilter,
  optionalId,
  type Server,
  type Services,
  userIdQuery,
} from '../routes.ts'
import { conversationView, messageView, runStatusWord, toConversation, toMessages } from '../views.ts'

const params = z.object({ conversationId: idParam })
const title = z.string().max(500).nullish()
const noStore = 'no-store'

export function conversationRoutes(server: Server, services: Services): void {
  const { conversations } = services

  server.post(
    '/v1/conversations',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'Create a conversation',
        querystring: userIdQuery,
        body: z
          .object({ title, contactId: optionalId(), userId: z.string().max(200).nullish() })
          .loose()
          .nullish(),
        response: { 200: conversationView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      const { title: given, contactId } = request.body ?? {}
      return toConversation(await conversations.create(userId, titleOf(given), contactId))
    },
  )

  server.get(
    '/v1/conversations',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'List your conversations, most recently used first',
        querystring: userIdQuery.extend({
          limit: z.coerce.number().int().min(1).max(500).default(200),
          before: optionalFilter().describe('The id of the last conversation on the previous page.'),
          q: optionalFilter().describe('Only conversations whose title or summary contains this text.'),
        }),
        response: { 200: z.array(conversationView), 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { limit, before, q } = request.query
      const { rows, more } = await conversations.list(userId, { limit, before, ...defined({ search: q }) })
      const shown = rows.map(toConversation)
      if (more) linkNext(request, reply, { before: shown.at(-1)?.id ?? '' })
      return shown
    },
  )

  server.get(
    '/v1/conversations/:conversationId',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'One conversation, with its active run',
        params,
        querystring: userIdQuery,
        response: { 200: conversationView, 404: errorBody },
      },
    },
    async (request) => {
      const row = await conversations.get(callerOf(request, services).userId, request.params.conversationId)
      const [active] = await conversations.openRuns(row)
      return {
        ...toConversation(row),
        usage: await services.usage.ofConversation(row.id),
        activeRun:
          active === undefined
            ? null
            : { runId: active.id, status: runStatusWord(active.status), cursor: String(active.lastSeq) },
      }
    },
  )

  server.patch(
    '/v1/conversations/:conversationId',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'Rename a conversation, or link it to a contact',
        description: 'Only the fields that are given change. A `contactId` of null removes the link.',
        params,
        querystring: userIdQuery,
        body: z
          .object({
            title: z.string().max(500).nullable().optional(),
            contactId: z.string().min(1).max(200).nullable().optional(),
            userId: z.string().max(200).nullish(),
          })
          .refine(({ title: given, contactId }) => given !== undefined || contactId !== undefined, {
            message: 'Nothing to change: send "title" or "contactId".',
          }),
        response: { 200: conversationView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      const { conversationId } = request.params
      const { title: given, contactId } = request.body
      const changes = defined({ title: given === undefined ? undefined : titleOf(given), contactId })
      return toConversation(await conversations.update(userId, conversationId, changes))
    },
  )

  server.delete(
    '/v1/conversations/:conversationId',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'Delete a conversation and everything in it',
        description: 'A run that has not ended is cancelled first.',
        params,
        querystring: userIdQuery,
        response: { 204: z.null(), 404: errorBody, 409: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      await conversations.delete(await conversations.get(userId, request.params.conversationId))
      return reply.code(204).send(null)
    },
  )

  server.get(
    '/v1/conversations/:conversationId/messages',
    {
      schema: {
        tags: ['Conversations'],
        summary: 'The newest messages, oldest first',
        params,
        querystring: userIdQuery.extend({
          limit: z.coerce.number().int().min(1).max(200).default(50),
          before: optionalFilter().describe('Only messages before this ISO time, or before the message with this id.'),
        }),
        response: { 200: z.array(messageView), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const row = await conversations.get(callerOf(request, services).userId, request.params.conversationId)
      const { limit } = request.query
      const before = request.query.before === undefined ? undefined : await beforeOf(row, request.query.before)
      const { rows, more } = await conversations.messages(row, { limit, before })
      if (more) linkNext(request, reply, { before: rows[0]?.id ?? '' })
      reply.header('cache-control', noStore)
      const [undecided, feedback] = await Promise.all([
        services.comparisons.undecidedRuns(row.owner, row.id),
        services.feedback.inConversation(row),
      ])
      return toMessages(rows, undecided, feedback)
    },
  )

  /** `text` is the id of a message, or an ISO time. */
  async function beforeOf(row: ConversationRow, text: string): Promise<{ createdAt: number } | { id: string }> {
    if (await conversations.hasMessage(row, text)) return { id: text }
    const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
    if (Number.isNaN(at)) {
      throw new AppError(
        'invalid_request',
        'before: must be an ISO 8601 time such as 2026-02-09T12:00:00.000Z, or the id of a message of this conversation.',
      )
    }
    return { createdAt: at }
  }
}

function titleOf(given: string | null | undefined): string | null {
  const trimmed = given?.trim() ?? ''
  return trimmed === '' ? null : trimmed
}
