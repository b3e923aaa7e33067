// /v1/contacts/:contactId/facts, /todos and /events: the same four routes for each.

import { z } from 'zod'
import type { NewContactRecord } from '../../contacts/contact-service.ts'
import { todoStatuses } from '../../contacts/contact-limits.ts'
import { defined } from '../../kit/defined.ts'
import type { ContactRecordChanges, ContactRecordKind, ContactRecordRows } from '../../stores/contact-store.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import {
  eventChangesBody,
  factChangesBody,
  newEventBody,
  newFactBody,
  newTodoBody,
  todoChangesBody,
} from './contact-body.ts'
import { pageReply, listPage, pageQuery } from './contact-pages.ts'
import { eventView, factView, toEvent, toFact, todoView, toTodo } from './contact-views.ts'

export const contactParams = z.object({ contactId: idParam })
const recordParams = contactParams.extend({ recordId: idParam })

type RecordFamily<Kind extends ContactRecordKind> = {
  kind: Kind
  /** The last part of the path, which is also the word for several of them. */
  path: string
  /** For one of them, with its article. */
  one: string
  order: string
  body: z.ZodType<NewContactRecord<Kind>>
  changes: z.ZodType<Record<string, unknown>>
  view: z.ZodType
  toView: (row: ContactRecordRows[Kind]) => object
}

export function recordRoutes(server: Server, services: Services): void {
  addRoutes(server, services, {
    kind: 'fact',
    path: 'facts',
    one: 'a fact',
    order: 'added last first',
    body: newFactBody,
    changes: factChangesBody,
    view: factView,
    toView: toFact,
  })
  addRoutes(server, services, {
    kind: 'todo',
    path: 'todos',
    one: 'a to-do',
    order: 'added last first; with status=pending, due first',
    body: newTodoBody,
    changes: todoChangesBody,
    view: todoView,
    toView: toTodo,
  })
  addRoutes(server, services, {
    kind: 'event',
    path: 'events',
    one: 'an event',
    order: 'latest first',
    body: newEventBody,
    changes: eventChangesBody,
    view: eventView,
    toView: toEvent,
  })
}

function addRoutes<Kind extends ContactRecordKind>(
  server: Server,
  services: Services,
  { kind, path, one, order, body, changes, view, toView }: RecordFamily<Kind>,
): void {
  const { contacts } = services
  const tags = ['Contacts']
  const all = `/v1/contacts/:contactId/${path}`
  const status =
    kind === 'todo' ? { status: z.enum(todoStatuses).optional().describe('Only to-dos with this status.') } : {}

  server.post(
    all,
    {
      schema: {
        tags,
        summary: `Add ${one} to a contact`,
        params: contactParams,
        querystring: userIdQuery,
        body,
        response: { 201: view, 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const fields = request.body as NewContactRecord<Kind>
      const row = await contacts.addRecord(kind, userId, request.params.contactId, fields)
      return reply.code(201).send(toView(row))
    },
  )

  server.get(
    all,
    {
      schema: {
        tags,
        summary: `List the ${path} of a contact, ${order}`,
        params: contactParams,
        querystring: pageQuery.extend(status),
        response: { 200: listPage(view), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const filter = defined({ status: (request.query as { status?: (typeof todoStatuses)[number] }).status })
      return await pageReply(request, reply, toView, (page) =>
        contacts.listRecords(kind, userId, request.params.contactId, { ...page, ...filter }),
      )
    },
  )

  server.patch(
    `${all}/:recordId`,
    {
      schema: {
        tags,
        summary: `Change ${one} of a contact`,
        description: 'Only the fields that are given change.',
        params: recordParams,
        querystring: userIdQuery,
        body: changes,
        response: { 200: view, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      const { contactId, recordId } = request.params
      const given = defined(request.body) as ContactRecordChanges<Kind>
      return toView(await contacts.updateRecord(kind, { owner: userId, contactId, id: recordId }, given))
    },
  )

  server.delete(
    `${all}/:recordId`,
    {
      schema: {
        tags,
        summary: `Delete ${one} of a contact`,
        params: recordParams,
        querystring: userIdQuery,
        response: { 204: z.null(), 404: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { contactId, recordId } = request.params
      await contacts.deleteRecord(kind, { owner: userId, contactId, id: recordId })
      return reply.code(204).send(null)
    },
  )
}
