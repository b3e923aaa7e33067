// What a client of the data stream wire (`useChat` of AI SDK 4) sends beside the usual fields: the id
// of its chat, and the results of its tools in the last assistant message.

import { z } from 'zod'
import type { ClientToolResult } from '../../runs/client-tool-service.ts'
import { jsonValue } from '../json-value.ts'
import type { ChatBody } from './chat-request.ts'

const invocation = z.object({ state: z.literal('result'), toolCallId: z.string().min(1).max(200), result: jsonValue })

const assistantMessage = z.object({
  role: z.literal('assistant'),
  parts: z.array(z.unknown()).max(10_000).nullish(),
  toolInvocations: z.array(z.unknown()).max(10_000).nullish(),
})

/** The hook names no conversation unless it is told to; the id of its chat is the name then. */
export function withChatId(body: ChatBody): ChatBody {
  const { id } = body
  if (body.conversationId !== undefined || body.sessionId !== undefined) return body
  return typeof id === 'string' && id.trim() !== '' && id.length <= 200 ? { ...body, conversationId: id.trim() } : body
}

/** The results in the last message, if it is one of the assistant. Those of server tools are among them. */
export function toolResultsIn({ messages }: ChatBody): ClientToolResult[] {
  const last = assistantMessage.safeParse(messages?.at(-1))
  if (!last.success) return []
  const { parts, toolInvocations } = last.data
  const inParts = (parts ?? []).flatMap((part) => {
    const found = z.object({ type: z.literal('tool-invocation'), toolInvocation: z.unknown() }).safeParse(part)
    return found.success ? [found.data.toolInvocation] : []
  })
  return (inParts.length > 0 ? inParts : (toolInvocations ?? [])).flatMap((item) => {
    const { success, data } = invocation.safeParse(item)
    return success ? [{ toolCallId: data.toolCallId, output: data.result }] : []
  })
}
