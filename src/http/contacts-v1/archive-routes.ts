// Archives of conversations: make one, review it, and apply or discard it.

import { z } from 'zod'
import { defined } from '../../kit/defined.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { requestSignal } from '../request-signal.ts'
import { agentBody, agentOptionsOf } from './agent-body.ts'
import { archiveChangesBody } from './archive-body.ts'
import { archiveView, toArchiveView } from './archive-views.ts'

const tags = ['Contacts']
const conversationParams = z.object({ conversationId: idParam })
const params = z.object({ archiveId: idParam })
const noBody = z.object({ userId: z.string().max(200).nullish() }).nullish()

export function archiveRoutes(server: Server, services: Services): void {
  const { archives, streams } = services

  server.post(
    '/v1/conversations/:conversationId/archive',
    {
      schema: {
        tags,
        summary: 'Extract contacts, events, facts and to-dos from a conversation, for review',
        description:
          'Nothing is written to the contacts before the archive is applied. While the conversation has not changed, the answer is the same archive, unless it was discarded or options.forceRefresh is true.',
        params: conversationParams,
        querystring: userIdQuery,
        body: agentBody,
        response: {
          200: archiveView,
          400: errorBody,
          404: errorBody,
          409: errorBody,
          413: errorBody,
          429: errorBody,
          502: errorBody,
          503: errorBody,
          504: errorBody,
        },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request, services)
      const options = agentOptionsOf(request.body)
      const signal = requestSignal(reply, streams)
      return toArchiveView(await archives.archive(caller, request.params.conversationId, options, signal))
    },
  )

  server.get(
    '/v1/conversations/:conversationId/archive',
    {
      schema: {
        tags,
        summary: 'The newest archive of a conversation',
        params: conversationParams,
        querystring: userIdQuery,
        response: { 200: archiveView, 404: errorBody },
      },
    },
    async (request) =>
      toArchiveView(await archives.newest(callerOf(request, services).userId, request.params.conversationId)),
  )

  server.get(
    '/v1/conversation-archives/:archiveId',
    {
      schema: {
        tags,
        summary: 'One archive',
        params,
        querystring: userIdQuery,
        response: { 200: archiveView, 404: errorBody },
      },
    },
    async (request) => toArchiveView(await archives.get(callerOf(request, services), request.params.archiveId)),
  )

  server.patch(
    '/v1/conversation-archives/:archiveId',
    {
      schema: {
        tags,
        summary: 'Change what an archive would write',
        description:
          'Each list that is given replaces the list of the archive: send the entries that are to be kept, corrected if need be. Possible until the archive is applied or discarded.',
        params,
        querystring: userIdQuery,
        body: archiveChangesBody,
        response: { 200: archiveView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const lists = defined(request.body.payload)
      return toArchiveView(await archives.change(callerOf(request, services), request.params.archiveId, lists))
    },
  )

  server.post(
    '/v1/conversation-archives/:archiveId/apply',
    {
      schema: {
        tags,
        summary: 'Write the contacts, events, facts and to-dos of an archive',
        description:
          'All or nothing. A second call changes nothing and gives the same answer. An archive that was discarded cannot be applied (400).',
        params,
        querystring: userIdQuery,
        body: noBody,
        response: { 200: archiveView, 400: errorBody, 404: errorBody, 409: errorBody },
      },
    },
    async (request) => toArchiveView(await archives.apply(callerOf(request, services), request.params.archiveId)),
  )

  server.post(
    '/v1/conversation-archives/:archiveId/discard',
    {
      schema: {
        tags,
        summary: 'Discard an archive',
        description: 'A second call changes nothing. An archive that was applied cannot be discarded (400).',
        params,
        querystring: userIdQuery,
        body: noBody,
        response: { 200: archiveView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => toArchiveView(await archives.discard(callerOf(request, services), request.params.archiveId)),
  )
}
