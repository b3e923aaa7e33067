// Conversations in the chat API: load one with its messages, list, start and delete.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Trace } from '../../dialects/chunks/trace.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import type { FeedbackSummary } from '../../stores/feedback-store.ts'
import { linkNext } from '../next-link.ts'
import type { Server, Services } from '../routes.ts'
import { type ChatEntry, entriesOf } from './answers.ts'
import { clientFields, clientOf, clientQuery, idField, optionalIdField, sentenceBody } from './client.ts'
import { readTrace } from './read-trace.ts'

const conversationView = z
  .object({
    conversation_id: z.string(),
    title: z.string(),
    created_at: z.string(),
    last_message_at: z.string(),
  })
  .meta({ id: 'Chat' })

const messageTrace = z.object({
  trace_id: z.string(),
  events: z
    .array(z.looseObject({ type: z.string(), timestamp: z.string() }))
    .describe('Without text events: their text is in content.'),
  status: z.string(),
  total_tool_calls: z.number(),
  total_duration_ms: z.number().nullable(),
})

const messageView = z
  .object({
    message_id: z.string(),
    sender: z.enum(['User', 'Assistant']),
    content: z.string(),
    created_at: z.string(),
    feedback: z.enum(['like', 'dislike']).nullable(),
    comment_count: z.number(),
    trace: messageTrace
      .optional()
      .describe('Only on the last message of a run: the answer, or the question if there is no answer.'),
  })
  .meta({ id: 'ChatMessage' })

/** Only the newest answers have their trace in the reply; a client fetches older traces one by one. */
const tracesMax = 100
/** The limit for all traces in one reply, in characters. */
const tracesCharsMax = 2 * 1024 * 1024
/** Counts stored messages; an answer with tool calls has several. */
const messagesPageMax = 2000

const untitled = 'New Chat'
const limit = z.coerce.number().int().min(1).max(500).default(50)
const pageField = optionalIdField.describe('The id of the last conversation on the previous page.')
const listView = z.object({ conversations: z.array(conversationView) })

export function chatConversationRoutes(server: Server, services: Services): void {
  const { journal, conversations } = services

  server.post(
    '/api/load_conversation',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'A conversation with its messages, oldest first, and their feedback',
        description:
          'Returns the newest messages that fit into one reply. If there are older ones, send before to get them. The reply then also has a Link header with rel="next", which leads to them in the shape of GET /v1/conversations/{id}/messages.',
        querystring: clientQuery,
        body: z.object({
          ...clientFields,
          conversation_id: idField,
          before: optionalIdField.describe(
            'Only messages before the one with this id: the first message of the page that you have.',
          ),
        }),
        response: {
          200: conversationView.extend({ messages: z.array(messageView) }),
          400: sentenceBody,
          404: sentenceBody,
        },
      },
    },
    async (request, reply) => {
      const owner = clientOf(request, services)
      const row = await conversations.get(owner, request.body.conversation_id)
      const { before } = request.body
      const [page, feedback] = await Promise.all([
        conversations.messagesInAnyState(row, { limit: messagesPageMax, before }),
        services.feedback.inConversation(row),
      ])
      const first = page.rows[0]?.id ?? ''
      // A chat client posts again with `before`. A link can only be followed with GET, so it leads to the list in /v1.
      if (page.more) {
        const path = `/v1/conversations/${encodeURIComponent(shownConversationId(row.id))}/messages`
        linkNext(request, reply, { client_id: owner, before: first }, path)
      }
      const entries = entriesOf(page.rows)
      const traces = await tracesOf(entries, await services.comparisons.undecidedRuns(owner, row.id))
      reply.header('cache-control', 'no-store')
      return {
        ...toConversation(row),
        messages: entries.map((entry) => {
          const trace = traces.get(entry.id)
          return {
            message_id: entry.id,
            sender: entry.role === 'user' ? ('User' as const) : ('Assistant' as const),
            content: entry.content,
            created_at: isoTime(entry.createdAt),
            ...feedbackOn(entry, feedback),
            ...(trace === undefined ? {} : { trace }),
          }
        }),
      }
    },
  )

  server.get(
    '/api/list_conversations',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Your conversations, the one with the newest message first',
        querystring: clientQuery.extend({ limit, before: pageField }),
        response: { 200: listView, 400: sentenceBody },
      },
    },
    async (request, reply) => await list(request, reply, request.query),
  )

  server.post(
    '/api/list_conversations',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'The same as GET, for clients that send POST',
        querystring: clientQuery,
        body: z.object({ ...clientFields, limit, before: pageField }),
        response: { 200: listView, 400: sentenceBody },
      },
    },
    async (request, reply) => await list(request, reply, request.body),
  )

  server.post(
    '/api/new_conversation',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Start a conversation; it is stored with its first message',
        querystring: clientQuery,
        body: z.object(clientFields).loose().nullish(),
        response: { 200: z.object({ conversation_id: z.null() }) },
      },
    },
    async () => ({ conversation_id: null }),
  )

  server.post(
    '/api/delete_conversation',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Delete a conversation with its messages, traces, comparisons and feedback',
        description: 'Runs that have not ended are cancelled first.',
        querystring: clientQuery,
        body: z.object({ ...clientFields, conversation_id: idField }),
        response: {
          200: z.object({ success: z.literal(true), deleted_conversation_id: z.string() }),
          400: sentenceBody,
          404: sentenceBody,
          409: sentenceBody,
        },
      },
    },
    async (request) => {
      const owner = clientOf(request, services)
      const row = await conversations.get(owner, request.body.conversation_id)
      await conversations.delete(row)
      return { success: true as const, deleted_conversation_id: shownConversationId(row.id) }
    },
  )

  async function list(
    request: FastifyRequest,
    reply: FastifyReply,
    page: { limit: number; before: string | undefined },
  ): Promise<z.infer<typeof listView>> {
    const owner = clientOf(request, services)
    const { rows, more } = await conversations.listByLastMessage(owner, page)
    const shown = rows.map(toConversation)
    // The link is right for a POST too, because GET has the same path.
    const next = { limit: page.limit, before: shown.at(-1)?.conversation_id ?? '' }
    if (more) linkNext(request, reply, { client_id: owner, ...next })
    return { conversations: shown }
  }

  /** The traces, keyed by the last message of their run. */
  async function tracesOf(
    messages: readonly ChatEntry[],
    undecided: ReadonlySet<string>,
  ): Promise<Map<string, z.infer<typeof messageTrace>>> {
    const lastOfRun = new Map<string, string>()
    for (const message of messages) if (message.runId !== null) lastOfRun.set(message.runId, message.id)
    const traces = new Map<string, z.infer<typeof messageTrace>>()
    let chars = 0
    for (const [runId, messageId] of [...lastOfRun].slice(-tracesMax).toReversed()) {
      const page = await readTrace(journal, runId, {
        undecided: undecided.has(runId),
        charsMax: tracesCharsMax,
        shows: (event) => event.type !== 'text',
      })
      chars += page.chars
      // Leave out a trace that does not fit: a client would take half a trace for a whole one.
      if (page.more || chars > tracesCharsMax) break
      // The run may have been removed while its messages are kept.
      if (page.trace.created_at !== null) traces.set(messageId, shortened(page.trace))
    }
    return traces
  }
}

function toConversation(row: ConversationRow): z.infer<typeof conversationView> {
  return {
    conversation_id: shownConversationId(row.id),
    title: row.title ?? untitled,
    created_at: isoTime(row.createdAt),
    last_message_at: isoTime(row.lastMessageAt ?? row.createdAt),
  }
}

/** Collects the feedback on all steps of an answer: each step has its own message id, and users react to any of them. */
function feedbackOn(
  { ids }: ChatEntry,
  feedback: ReadonlyMap<string, FeedbackSummary>,
): { feedback: 'like' | 'dislike' | null; comment_count: number } {
  const said = ids.flatMap((id) => feedback.get(id) ?? [])
  return {
    feedback: said.findLast(({ reaction }) => reaction !== null)?.reaction ?? null,
    comment_count: said.reduce((sum, { comments }) => sum + comments, 0),
  }
}

function shortened({
  trace_id,
  events,
  status,
  total_tool_calls,
  total_duration_ms,
}: Trace): z.infer<typeof messageTrace> {
  return {
    trace_id,
    events,
    status,
    total_tool_calls,
    total_duration_ms,
  }
}
