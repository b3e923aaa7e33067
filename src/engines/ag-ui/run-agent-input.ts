// The request to a remote agent: our messages as AG-UI messages, with the state of the agent
// and the decisions on its interrupts.

import { createHash } from 'node:crypto'
import type { TurnRequest } from '../engine.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import type { ModelMessage } from '../../models/model.ts'
import { confirmPrefix, type ResumeEntry } from './interrupts.ts'
import { keyOfMessage, type MessageIds } from './message-ids.ts'

export type RunAgentInput = {
  threadId: string
  runId: string
  state: JsonValue
  messages: JsonValue[]
  tools: []
  context: { description: string; value: string }[]
  forwardedProps: Record<string, JsonValue>
  resume?: ResumeEntry[]
}

/** Stable for the conversation. The second of two answers has its own thread, because both run at the same time. */
export function threadOf({ conversationId, runId, spec }: TurnRequest): string {
  if (conversationId === null) return runId
  return spec.variant === 'shadow' || spec.secondOf !== undefined ? `${conversationId}-${runId}` : conversationId
}

export function runAgentInputOf(
  request: TurnRequest,
  remote: {
    threadId: string
    runId: string
    state: JsonValue
    openCalls: readonly string[]
    messageIds: MessageIds
    resume?: ResumeEntry[]
  },
): RunAgentInput {
  const { threadId, runId, state, openCalls, messageIds, resume } = remote
  const { context } = request.spec
  return {
    threadId,
    runId,
    state,
    messages: toMessages(request.messages, idsFor(threadId, messageIds), openCalls),
    tools: [],
    context:
      context === undefined || Object.keys(context).length === 0
        ? []
        : [{ description: 'Context given by the application (JSON)', value: sortedJson(context) }],
    forwardedProps: {},
    ...defined({ resume }),
  }
}

type SentMessage = {
  id: string
  role: string
  content: string
  toolCalls?: JsonValue[]
  [more: string]: JsonValue | undefined
}

/** A call that waits for a decision has no result yet, so `openCalls` get none. Approvals without a call are ours only. */
function toMessages(
  messages: readonly ModelMessage[],
  idOf: (message: ModelMessage) => string,
  openCalls: readonly string[],
): JsonValue[] {
  const sent: SentMessage[] = []
  for (const message of messages) {
    const { role, content } = message
    if (role === 'tool') {
      if (openCalls.includes(message.callId) || message.callId.startsWith(confirmPrefix)) continue
      const error = message.isError ? { error: content.slice(0, 2000) } : {}
      sent.push({ id: idOf(message), role, toolCallId: message.callId, content, ...error })
      continue
    }
    if (role !== 'assistant') {
      // The instructions of a remote agent are its own; a definition may leave them empty.
      if (role === 'user' || content.trim() !== '') sent.push({ id: idOf(message), role, content })
      continue
    }
    const toolCalls = (message.toolCalls ?? [])
      .filter(({ callId }) => !callId.startsWith(confirmPrefix))
      .map(({ callId, name, input }) => ({
        id: callId,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      }))
    if (toolCalls.length === 0 && content === '') continue
    const id = idOf(message)
    // The journal has one message for each call; the remote agent may have made several calls in one.
    const known = sent.find((other) => other.id === id && other.role === role)
    if (known !== undefined) {
      known.content += content
      known.toolCalls = [...(known.toolCalls ?? []), ...toolCalls]
    } else sent.push({ id, role, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) })
  }
  return sent as JsonValue[]
}

function callsOf(message: ModelMessage): string[] {
  if (message.role === 'tool') return [message.callId]
  return message.role === 'assistant' ? (message.toolCalls ?? []).map(({ callId }) => callId) : []
}

/**
 * The remote agent's own ids for what it said, and for the rest ids that are the same in every request of the thread. They
 * depend on the content, so that they do not shift when old messages no longer fit.
 */
function idsFor(threadId: string, known: MessageIds): (message: ModelMessage) => string {
  const counts = new Map<string, number>()
  return (message) => {
    const key = keyOfMessage(message)
    const own = key !== undefined && Object.hasOwn(known, key) ? known[key] : undefined
    if (own !== undefined) return own
    const digest = createHash('sha256')
      .update(JSON.stringify([threadId, message.role, message.content, callsOf(message)]))
      .digest('hex')
      .slice(0, 24)
    const count = (counts.get(digest) ?? 0) + 1
    counts.set(digest, count)
    return count === 1 ? `msg-${digest}` : `msg-${digest}-${count}`
  }
}
