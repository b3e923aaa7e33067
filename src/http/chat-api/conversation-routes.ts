// Conversations as the chat's client keeps them: load, list, new, delete.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Trace } from '../../dialects/chunks/trace.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import { ownConversation } from '../../runs/conversation-names.ts'
import type { ConversationRow, FeedbackSummary } from '../../stores/store.ts'
import type { Server, Services } from '../routes.ts'
import { type Entry, entriesOf, messagesMax } from './answers.ts'
import { clientFields, clientOf, clientQuery, idField, sentenceBody } from './client.ts'
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
    .describe('Without the text, which is the content.'),
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
      .describe('With the last message of the run: the answer, or the question where none came.'),
  })
  .meta({ id: 'ChatMessage' })

/** Traces of older answers are fetched one by one. */
const tracesMax = 100

const untitled = 'New Chat'
const limit = z.coerce.number().int().min(1).max(500).default(50)
const listView = z.object({ conversations: z.array(conversationView) })

export function chatConversationRoutes(server: Server, services: Services): void {
  const { store, runs } = services

  server.post(
    '/api/load_conversation',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'A conversation with its messages, in order, and what was said about them',
        querystring: clientQuery,
        body: z.object({ ...clientFields, conversation_id: idField }),
        response: {
          200: conversationView.extend({ messages: z.array(messageView) }),
          400: sentenceBody,
          404: sentenceBody,
        },
      },
    },
    async (request, reply) => {
      const owner = clientOf(request, services)
      const row = await ownConversation(store, owner, request.body.conversation_id)
      const [all, feedback] = await Promise.all([
        store.allMessages(row.id, { limit: messagesMax }),
        store.feedbackIn(row.id, owner),
      ])
      const entries = entriesOf(all)
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
        querystring: clientQuery.extend({ limit }),
        response: { 200: listView, 400: sentenceBody },
      },
    },
    async (request) => await list(request, request.query.limit),
  )

  server.post(
    '/api/list_conversations',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'The same, for clients that post',
        querystring: clientQuery,
        body: z.object({ ...clientFields, limit }),
        response: { 200: listView, 400: sentenceBody },
      },
    },
    async (request) => await list(request, request.body.limit),
  )

  server.post(
    '/api/new_conversation',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Begin a conversation: nothing is stored until its first message',
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
        description: 'What is being answered in it is cancelled first.',
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
      const row = await ownConversation(store, owner, request.body.conversation_id)
      await runs.deleteConversation(owner, row.id)
      return { success: true as const, deleted_conversation_id: shownConversationId(row.id) }
    },
  )

  async function list(request: FastifyRequest, count: number): Promise<z.infer<typeof listView>> {
    const rows = (await store.listConversationsByLastMessage(clientOf(request, services), { limit: count })).rows
    return { conversations: rows.map(toConversation) }
  }

  /** By the message that they are shown with: the last of their run. */
  async function tracesOf(
    messages: readonly Entry[],
    undecided: ReadonlySet<string>,
  ): Promise<Map<string, z.infer<typeof messageTrace>>> {
    const lastOfRun = new Map<string, string>()
    for (const message of messages) if (message.runId !== null) lastOfRun.set(message.runId, message.id)
    const traces = new Map<string, z.infer<typeof messageTrace>>()
    for (const [runId, messageId] of [...lastOfRun].slice(-tracesMax)) {
      const trace = await readTrace(store, runId, undecided.has(runId))
      // Runs may be removed before their messages.
      if (trace.created_at !== null) traces.set(messageId, shortened(trace))
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

/** An answer may have been written in several steps, and each has an id that somebody may have liked. */
function feedbackOn(
  { ids }: Entry,
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
    events: events.filter((event) => event.type !== 'text'),
    status,
    total_tool_calls,
    total_duration_ms,
  }
}
