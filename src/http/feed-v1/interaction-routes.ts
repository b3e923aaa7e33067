// GET /v1/interactions: the inbox of a user. Everything that waits, or waited, for a decision:
// confirmations of tool calls, questions, and calls of tools that the client executes.

import { z } from 'zod'
import { defined } from '../../kit/defined.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { interactionView, toInteractionView } from './interaction-view.ts'

const { kind, status } = interactionView.shape

export function interactionRoutes(server: Server, services: Services): void {
  server.get(
    '/v1/interactions',
    {
      schema: {
        tags: ['Feed'],
        summary: 'Questions of all kinds that wait, or waited, for you; newest first',
        description:
          'Decide a `confirmation` or a `question` with POST /v1/tool-confirmations/{id}/confirm or /reject, and a `client_tool` with POST /v1/agent/runs/{runId}/tool-results.',
        querystring: userIdQuery.extend({
          status: optionalFilter().pipe(status.optional()),
          kind: optionalFilter().pipe(kind.optional()),
          conversationId: optionalFilter(),
          runId: optionalFilter(),
          limit: z.coerce.number().int().min(1).max(200).default(100),
          before: optionalFilter().describe('The id of the last interaction on the previous page.'),
        }),
        response: { 200: z.array(interactionView), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { limit, before, runId, ...query } = request.query
      const owner = callerOf(request, services).userId
      const conversationId = await services.conversations.idFilter(owner, query.conversationId)
      if (conversationId === null) return []
      const { rows, more } = await services.interactions.list({
        owner,
        limit,
        ...defined({
          conversationId,
          runId,
          before,
          kind: query.kind,
          status: query.status === undefined ? undefined : [query.status],
        }),
      })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      return rows.map(toInteractionView)
    },
  )
}
