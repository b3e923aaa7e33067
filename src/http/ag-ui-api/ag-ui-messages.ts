// AG-UI messages: those of a request as chat messages, and stored messages as AG-UI messages.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import { clientErrorCharsMax, type ClientToolResult } from '../../runs/client-tool-service.ts'
import type { MessageRow } from '../../stores/message-store.ts'
import type { ChatBody } from '../agent-v1/chat-request.ts'

const calledFunction = z.object({ name: z.string().min(1).max(200), arguments: z.string() }).loose()

export const agUiMessage = z
  .object({
    id: z.string().max(200).optional(),
    role: z.string().max(40),
    content: z.unknown().optional(),
    toolCalls: z
      .array(z.object({ id: z.string().min(1).max(200), function: calledFunction }).loose())
      .max(128)
      .nullish(),
    toolCallId: z.string().min(1).max(200).nullish(),
    error: z.string().nullish(),
  })
  .loose()

type AgUiMessageOfClient = z.infer<typeof agUiMessage>
type ChatMessage = NonNullable<ChatBody['messages']>[number]

/**
 * The messages of a request in the format of the chat API. If the conversation is stored, only the last question and the
 * instructions of the application are left. Reasoning and activities are shown by the client and mean nothing here.
 */
export function toChatMessages(messages: readonly AgUiMessageOfClient[], isStored: boolean): ChatMessage[] {
  const known = messages.flatMap(toChatMessage)
  const last = known.at(-1)
  if (last?.role !== 'user' && (isStored || last?.role !== 'tool')) {
    throw new AppError(
      'messages_or_prompt_required',
      'The last message must have the role "user". To continue a run, send "resume", or the result of a tool that it waits for.',
    )
  }
  return isStored ? known.filter((message) => message === last || isInstruction(message)) : known
}

function isInstruction({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function toChatMessage(message: AgUiMessageOfClient): ChatMessage[] {
  const { role, toolCalls, toolCallId } = message
  const content = message.content as ChatMessage['content']
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      return [{ role, content: contentOf(content) }]
    case 'assistant':
      return [{ role, content: contentOf(content), ...defined({ tool_calls: toolCalls ?? undefined }) }]
    case 'tool':
      return [{ role, content: contentOf(content), ...defined({ tool_call_id: toolCallId ?? undefined }) }]
    default:
      return []
  }
}

const contentShape = z.union([
  z.string(),
  z.array(z.object({ type: z.string(), text: z.string().optional() }).loose()).max(1000),
  z.null(),
])

function contentOf(content: unknown): ChatMessage['content'] {
  const parsed = contentShape.safeParse(content ?? null)
  if (parsed.success) return parsed.data
  throw new AppError('messages_invalid', 'messages: content must be a text or a list of parts, each with a "type".')
}

/** The results of calls that the client has after the last message of the assistant. */
export function toolResultsOf(messages: readonly AgUiMessageOfClient[]): ClientToolResult[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(last + 1).flatMap((message): ClientToolResult[] => {
    const { role, toolCallId, content, error } = message
    if (role !== 'tool' || toolCallId == null) return []
    if (error != null && error !== '') return [{ toolCallId, error: error.slice(0, clientErrorCharsMax) }]
    return [{ toolCallId, output: resultText(contentOf(content)) }]
  })
}

function resultText(content: ChatMessage['content']): string {
  if (content == null || typeof content === 'string') return content ?? ''
  return content.map((part) => part.text ?? JSON.stringify(part)).join('')
}

/** A snapshot has the newest messages, up to this many and this size. */
export const snapshotMessagesMax = 1000
const snapshotCharsMax = 4 * 1024 * 1024

/** The messages that a client is shown before those of a run. */
export function toAgUiHistory(rows: readonly MessageRow[]): object[] {
  const newestFirst: object[] = []
  let chars = 0
  for (const row of rows.toReversed()) {
    const message = toAgUiMessage(row)
    chars += JSON.stringify(message).length
    if (chars > snapshotCharsMax) break
    newestFirst.push(message)
  }
  return newestFirst.toReversed()
}

type StoredCall = { callId: string; name: string; input: JsonValue }

function toAgUiMessage({ id, role, content, toolCallId, metadata }: MessageRow): object {
  if (role === 'tool') return { id, role, toolCallId: toolCallId ?? 'unknown', content }
  if (role !== 'assistant') return { id, role, content }
  const calls = (metadata['toolCalls'] ?? []) as StoredCall[]
  if (calls.length === 0) return { id, role, content }
  const toolCalls = calls.map(({ callId, name, input }) => ({
    id: callId,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }))
  return { id, role, ...(content === '' ? {} : { content }), toolCalls }
}
