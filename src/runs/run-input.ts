// Determines the input of a run and the message rows that it adds. The input is a new question,
// tool results that the model continues from, or a question of the conversation again.
// Stored messages take precedence over a history that the client sent.

import { AppError } from '../errors/app-error.ts'
import { shownConversationId } from '../kit/conversation-id.ts'
import { defined } from '../kit/defined.ts'
import type { Part } from '../journal/part.ts'
import type { Ids } from '../kit/ids.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import { conversationNotFound } from './conversation-names.ts'
import type { EarlierMessage, StartRequest } from './start-request.ts'

export type RunInput = {
  input: string
  /** Present if the question has a part that is not text. */
  parts?: Part[]
  /** Null if the model continues from tool results. */
  userMessageId: string | null
  messages: MessageRow[]
  /** The messages that the new answer replaces. */
  supersedes?: string[]
  /** The text that the title is made from if the conversation has none. */
  titleText: string
}

type Conversation = { id: string; exists: boolean }
type RunInputDependencies = { store: Pick<MessageStore, 'listMessages' | 'allMessages'>; ids: Ids }

/** How many rows are searched for the last question. One answer has at most a few hundred messages. */
const lookBackRowsMax = 2000

export async function runInputFor(
  request: StartRequest,
  conversation: Conversation,
  at: number,
  dependencies: RunInputDependencies,
): Promise<RunInput> {
  if (request.regenerate === true) return await regeneratedInput(conversation, request.questionId, dependencies)
  const stored =
    conversation.exists && (await dependencies.store.listMessages(conversation.id, { limit: 1 })).rows.length > 0
  const row = (entry: EarlierMessage) => earlierRow(entry, conversation.id, at, dependencies.ids)
  if (request.continues === true) {
    const messages = stored ? await newResults(request, conversation, dependencies) : request.earlier
    const lastUser = request.earlier.findLast(({ role }) => role === 'user')
    return { input: '', userMessageId: null, messages: messages.map(row), titleText: lastUser?.content ?? '' }
  }
  const { input, parts } = request
  const asked = row({ role: 'user', content: input, ...defined({ parts }) })
  const imported = stored ? [] : request.earlier.map(row)
  const replaced =
    request.questionId === undefined ? undefined : await activeFrom(conversation, request.questionId, dependencies)
  return {
    input,
    ...defined({ parts, supersedes: replaced?.map(({ id }) => id) }),
    userMessageId: asked.id,
    messages: [...imported, asked],
    titleText: titleTextOf(request),
  }
}

/** The tool calls and results at the end of the client's list. Throws if the stored conversation already has these results. */
async function newResults(
  { earlier }: StartRequest,
  conversation: Conversation,
  { store }: RunInputDependencies,
): Promise<EarlierMessage[]> {
  const group = earlier.slice(earlier.findLastIndex(({ role }) => role === 'assistant'))
  const rows = (await store.allMessages(conversation.id, { limit: lookBackRowsMax })).filter(
    (row) => row.state === 'active',
  )
  const calling = rows.findLastIndex((row) => row.role === 'assistant' && Array.isArray(row.metadata.toolCalls))
  const results = new Set(rows.slice(calling + 1).flatMap((row) => row.toolCallId ?? []))
  const isStored = group.every((entry) => entry.role !== 'tool' || results.has(entry.callId))
  if (isStored) {
    throw new AppError(
      'messages_invalid',
      'messages: the conversation already holds the results of the calls that the list ends with; end it with a user message.',
    )
  }
  return group
}

/** The question, the last one if none is named, and the messages after it, which the new answer replaces. */
async function regeneratedInput(
  conversation: Conversation,
  questionId: string | undefined,
  dependencies: RunInputDependencies,
): Promise<RunInput> {
  const [asked, ...old] = await activeFrom(conversation, questionId, dependencies)
  if (asked === undefined) {
    throw new AppError(
      'nothing_to_regenerate',
      'The conversation has no question that could be answered again. Send a message first.',
    )
  }
  return {
    input: asked.content,
    ...defined({ parts: asked.parts }),
    userMessageId: asked.id,
    messages: [],
    supersedes: old.map((row) => row.id),
    titleText: asked.content,
  }
}

/** The question with this id, the last one if it is absent, and all active messages after it. Empty if there is none. */
async function activeFrom(
  conversation: Conversation,
  questionId: string | undefined,
  { store }: RunInputDependencies,
): Promise<MessageRow[]> {
  if (!conversation.exists) throw conversationNotFound(shownConversationId(conversation.id))
  const rows = await store.allMessages(conversation.id, { limit: lookBackRowsMax })
  const active = rows.filter(({ state }) => state === 'active')
  const at = active.findLastIndex(({ role, id }) => role === 'user' && (questionId === undefined || id === questionId))
  return at === -1 ? [] : active.slice(at)
}

/** The words of the question, without the names of its files; those names if there are no words. */
function titleTextOf({ input, parts = [] }: StartRequest): string {
  const words = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return words.trim() === '' ? input : words
}

/** The row of a message that the client sent as history. */
export function earlierRow(entry: EarlierMessage, conversationId: string, at: number, ids: Ids): MessageRow {
  const calls = entry.role === 'assistant' ? entry.toolCalls : undefined
  return {
    id: ids(),
    conversationId,
    runId: null,
    parentId: null,
    role: entry.role,
    content: entry.content,
    ...(entry.role === 'user' ? defined({ parts: entry.parts }) : {}),
    state: 'active',
    toolCallId: entry.role === 'tool' ? entry.callId : null,
    metadata: {
      imported: true,
      ...defined({ toolCalls: calls }),
      ...(entry.role === 'tool' ? { toolName: entry.name, outcome: 'succeeded' } : {}),
    },
    createdAt: at,
  }
}
