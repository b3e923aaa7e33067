// GET /v1/agent/messages: the stored messages under the key (user, conversation or
// session). A view like any other; nothing lives only in memory.

import { z } from 'zod'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { messageView, toMessage } from '../views.ts'

const newestMessages = 200

export function messagesRoute(server: Server, services: Services): void {
  const { store } = services
  server.get(
    '/v1/agent/messages',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The messages of a conversation or session',
        description: 'The newest 200, ascending. A key that nobody used is an empty list.',
        querystring: userIdQuery.extend({ conversationId: optionalFilter(), sessionId: optionalFilter() }),
        response: { 200: z.array(messageView), 400: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      const { conversationId, sessionId } = request.query
      const conversation =
        conversationId === undefined
          ? await store.findConversationBySession(userId, sessionId ?? 'default')
          : await store.readConversation(conversationId)
      if (conversation === undefined || conversation.owner !== userId) return []
      return (await store.listMessages(conversation.id, { limit: newestMessages })).map(toMessage)
    },
  )
}
