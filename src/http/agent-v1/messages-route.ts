// /v1/agent/messages: the stored messages of one conversation. The caller names it by conversationId
// or sessionId; without a name it is the newest conversation that the caller started without one.

import { z } from 'zod'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { messageView, toMessages } from '../views.ts'

const newestMessages = 200

const keyQuery = userIdQuery.extend({
  conversationId: optionalFilter().describe('The name of the conversation; takes precedence over sessionId.'),
  sessionId: optionalFilter().describe('The same as conversationId: both share one name space.'),
})

export function messagesRoute(server: Server, services: Services): void {
  const { conversations } = services
  server.get(
    '/v1/agent/messages',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The messages of a conversation or session',
        description:
          'The newest 200, oldest first. Without conversationId and sessionId: the messages of the newest conversation that you started without either. For an unknown name the list is empty.',
        querystring: keyQuery.extend({
          before: optionalFilter().describe('Only messages before the one with this id.'),
        }),
        response: { 200: z.array(messageView), 400: errorBody },
      },
    },
    async (request, reply) => {
      const row = await conversationOf(callerOf(request, services).userId, request.query)
      reply.header('cache-control', 'no-store')
      if (row === undefined) return []
      const { before } = request.query
      const { rows, more } = await conversations.messages(row, {
        limit: newestMessages,
        before: before === undefined ? undefined : { id: before },
      })
      if (more) linkNext(request, reply, { before: rows[0]?.id ?? '' })
      const [undecided, feedback] = await Promise.all([
        services.comparisons.undecidedRuns(row.owner, row.id),
        services.feedback.inConversation(row),
      ])
      return toMessages(rows, undecided, feedback)
    },
  )

  server.delete(
    '/v1/agent/messages',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Delete a conversation or session with its messages',
        description:
          'Deletes the conversation that GET with the same query shows, with its runs. A run that has not ended is cancelled first. The reply is 204 for an unknown name, too.',
        querystring: keyQuery,
        response: { 204: z.null(), 400: errorBody, 409: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const row = await conversationOf(userId, request.query)
      if (row !== undefined) await conversations.delete(row)
      return reply.code(204).send(null)
    },
  )

  async function conversationOf(
    owner: string,
    { conversationId, sessionId }: z.infer<typeof keyQuery>,
  ): Promise<ConversationRow | undefined> {
    const name = conversationId ?? sessionId
    return name === undefined ? await conversations.findUnnamed(owner) : await conversations.find(owner, name)
  }
}
