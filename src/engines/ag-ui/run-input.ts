// The request to a remote agent: our messages as AG-UI messages, with the state of the agent
// and the decisions on its interrupts.

import { createHash } from 'node:crypto'
import type { TurnRequest } from '../engine.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import type { ModelMessage } from '../../models/model.ts'
import { confirmPrefix, type ResumeEntry } from './interrupts.ts'

export type RunInput = {
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

export function runInputOf(
  request: TurnRequest,
  remote: { threadId: string; runId: string; state: JsonValue; openCalls: readonly string[]; resume?: ResumeEntry[] },
): RunInput {
  const { threadId, runId, state, openCalls, resume } = remote
  const { context } = request.spec
  return {
    threadId,
    runId,
    state,
    messages: toMessages(request.messages, threadId, openCalls),
    tools: [],
    context:
      context === undefined || Object.keys(context).length === 0
        ? []
        : [{ description: 'Context given by the application (JSON)', value: sortedJson(context) }],
    forwardedProps: {},
    ...defined({ resume }),
  }
}

/** A call that waits for a decision has no result yet, so `openCalls` get none. Approvals without a call are ours only. */
function toMessages(messages: readonly ModelMessage[], threadId: string, openCalls: readonly string[]): JsonValue[] {
  const idOf = messageIds(threadId)
  return messages.flatMap((message): JsonValue[] => {
    switch (message.role) {
      case 'system':
      case 'user':
        // The instructions of a remote agent are its own; a definition may leave them empty.
        if (message.role === 'system' && message.content.trim() === '') return []
        return [{ id: idOf(message), role: message.role, content: message.content }]
      case 'assistant': {
        const toolCalls = (message.toolCalls ?? []).filter(({ callId }) => !callId.startsWith(confirmPrefix))
        if (toolCalls.length === 0 && message.content === '') return []
        return [
          {
            id: idOf(message),
            role: 'assistant',
            content: message.content,
            ...(toolCalls.length === 0
              ? {}
              : {
                  toolCalls: toolCalls.map(({ callId, name, input }) => ({
                    id: callId,
                    type: 'function',
                    function: { name, arguments: JSON.stringify(input) },
                  })),
                }),
          },
        ]
      }
      case 'tool':
        if (openCalls.includes(message.callId) || message.callId.startsWith(confirmPrefix)) return []
        return [
          {
            id: idOf(message),
            role: 'tool',
            toolCallId: message.callId,
            content: message.content,
            ...(message.isError ? { error: message.content.slice(0, 2000) } : {}),
          },
        ]
    }
  })
}

function callsOf(message: ModelMessage): string[] {
  if (message.role === 'tool') return [message.callId]
  return message.role === 'assistant' ? (message.toolCalls ?? []).map(({ callId }) => callId) : []
}

/**
 * Ids that are the same in every request of the thread, because remote agents recognise by them which messages they have.
 * They depend on the content, so that they do not shift when old messages no longer fit.
 */
function messageIds(threadId: string): (message: ModelMessage) => string {
  const counts = new Map<string, number>()
  return (message) => {
    const digest = createHash('sha256')
      .update(JSON.stringify([threadId, message.role, message.content, callsOf(message)]))
      .digest('hex')
      .slice(0, 24)
    const count = (counts.get(digest) ?? 0) + 1
    counts.set(digest, count)
    return count === 1 ? `msg-${digest}` : `msg-${digest}-${count}`
  }
}
