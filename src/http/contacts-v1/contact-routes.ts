// /v1/contacts: create, list, get, change and delete contacts, what is known about one, and
// the conversations that are linked to it.

import { z } from 'zod'
import { defined } from '../../kit/defined.ts'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { conversationView, toConversation } from '../views.ts'
import { contactChangesBody, newContactBody } from './contact-body.ts'
import { pageReply, listPage, pageQuery } from './contact-pages.ts'
import { contactView, eventView, factView, toContact, toEvent, toFact, todoView, toTodo } from './contact-views.ts'
import { contactParams, recordRoutes } from './record-routes.ts'

const tags = ['Contacts']

/** Of each kind of record. The reply holds them twice. */
const contextRowsMax = 20

const contextView = z.object({
  contact: contactView,
  events: z.array(eventView).describe('Latest first.'),
  facts: z.array(factView).describe('Added last first.'),
  todos: z.array(todoView).describe('The open ones, in the order of their due time.'),
  recentEvents: z.array(eventView).describe('The same as events.'),
  stableFacts: z.array(factView).describe('The same as facts.'),
  openActions: z.array(todoView).describe('The same as todos.'),
})

export function contactRoutes(server: Server, services: Services): void {
  const { contacts } = services

  server.post(
    '/v1/contacts',
    {
      schema: {
        tags,
        summary: 'Create a contact',
        querystring: userIdQuery,
        body: newContactBody,
        response: { 201: contactView, 400: errorBody, 409: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      return reply.code(201).send(toContact(await contacts.create(userId, defined(request.body))))
    },
  )

  server.get(
    '/v1/contacts',
    {
      schema: {
        tags,
        summary: 'List your contacts, changed last first',
        querystring: pageQuery.extend({
          search: optionalFilter().describe(
            'Words that must all occur in name, alias, company, position, email, phone or tags.',
          ),
          tag: optionalFilter().describe('Only contacts with exactly this tag.'),
        }),
        response: { 200: listPage(contactView), 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { search, tag } = request.query
      return await pageReply(request, reply, toContact, (page) =>
        contacts.list(userId, { ...page, ...defined({ search, tag }) }),
      )
    },
  )

  server.get(
    '/v1/contacts/:contactId',
    {
      schema: {
        tags,
        summary: 'One contact',
        params: contactParams,
        querystring: userIdQuery,
        response: { 200: contactView, 404: errorBody },
      },
    },
    async (request) => toContact(await contacts.get(callerOf(request, services).userId, request.params.contactId)),
  )

  server.patch(
    '/v1/contacts/:contactId',
    {
      schema: {
        tags,
        summary: 'Change a contact',
        description: 'Only the fields that are given change; `profile` and `tags` are replaced as a whole.',
        params: contactParams,
        querystring: userIdQuery,
        body: contactChangesBody,
        response: { 200: contactView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      return toContact(await contacts.update(userId, request.params.contactId, defined(request.body)))
    },
  )

  server.delete(
    '/v1/contacts/:contactId',
    {
      schema: {
        tags,
        summary: 'Delete a contact with everything about it',
        description:
          'Its facts, to-dos and events, the conversations that are linked to it with their messages and runs, and stored results of agents about it. Runs that have not ended are cancelled first.',
        params: contactParams,
        querystring: userIdQuery,
        response: { 204: z.null(), 404: errorBody, 409: errorBody },
      },
    },
    async (request, reply) => {
      await contacts.delete(callerOf(request, services).userId, request.params.contactId)
      return reply.code(204).send(null)
    },
  )

  server.get(
    '/v1/contacts/:contactId/context',
    {
      schema: {
        tags,
        summary: 'What is known about a contact: its newest events and facts, and its open to-dos',
        params: contactParams,
        querystring: userIdQuery.extend({
          limit: z.coerce
            .number()
            .int()
            .min(1)
            .max(contextRowsMax)
            .default(contextRowsMax)
            .describe('How many of each kind.'),
        }),
        response: { 200: contextView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const { userId } = callerOf(request, services)
      const known = await contacts.context(userId, request.params.contactId, request.query.limit)
      const events = known.events.map(toEvent)
      const facts = known.facts.map(toFact)
      const todos = known.todos.map(toTodo)
      return {
        contact: toContact(known.contact),
        events,
        facts,
        todos,
        recentEvents: events,
        stableFacts: facts,
        openActions: todos,
      }
    },
  )

  server.get(
    '/v1/contacts/:contactId/conversations',
    {
      schema: {
        tags,
        summary: 'The conversations that are linked to a contact, most recently used first',
        params: contactParams,
        querystring: pageQuery,
        response: { 200: listPage(conversationView), 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      return await pageReply(request, reply, toConversation, (page) =>
        contacts.conversations(userId, request.params.contactId, page),
      )
    },
  )

  recordRoutes(server, services)
}
