// The body that the chat transport of the AI SDK posts: the whole history as UI messages. Only the
// last message counts. What the client says about earlier ones is used as text, and only if the
// conversation is not stored; of a decision only its id and the answer are read.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'
import { idParam, optionalId } from '../routes.ts'

const approval = z
  .object({ id: idParam, approved: z.boolean().nullish(), reason: z.string().max(2000).nullish() })
  .loose()

const uiPart = z
  .object({
    type: z.string(),
    text: z.string().optional(),
    state: z.string().optional(),
    approval: approval.optional(),
  })
  .loose()

const uiMessage = z
  .object({
    id: z.string().max(200).optional(),
    role: z.enum(['system', 'user', 'assistant']),
    parts: z.array(uiPart).max(10_000),
  })
  .loose()

export const uiChatBody = z
  .object({
    id: idParam.describe('The id of the chat: your name for the conversation.'),
    messages: z
      .array(uiMessage)
      .min(1)
      .max(10_000)
      .describe(
        'The messages of the chat. The last one counts: a question, or an assistant message with your answers to approval requests.',
      ),
    trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
    messageId: z.string().max(200).nullish(),
    agentId: optionalId(),
    model: optionalId(),
    context: z.record(z.string(), z.unknown()).nullish(),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
  })
  .loose()
  .meta({ id: 'UiChatRequest' })

export type UiChatBody = z.infer<typeof uiChatBody>

type UiMessageOfClient = UiChatBody['messages'][number]

export type ApprovalAnswer = { id: string; approved: boolean; reason: string | undefined }

/** The answers to approval requests in the last message; empty if it brings none. */
export function approvalAnswers({ messages }: UiChatBody): ApprovalAnswer[] {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  return last.parts.flatMap((part) => {
    if (part.state !== 'approval-responded' || part.approval?.approved == null) return []
    return [{ id: part.approval.id, approved: part.approval.approved, reason: part.approval.reason ?? undefined }]
  })
}

export function toUiStartRequest(
  body: UiChatBody,
  owner: string,
  idempotency: StartRequest['idempotency'],
  isStored: boolean,
): StartRequest {
  const question = body.messages.at(-1)
  if (question?.role !== 'user') {
    throw new AppError(
      'messages_or_prompt_required',
      'The last message must have the role "user", or be an assistant message with answers to approval requests.',
    )
  }
  const regenerates = body.trigger === 'regenerate-message' && isStored
  const input = textOf(question)
  if (input.trim() === '')
    throw new AppError('messages_or_prompt_required', 'The last user message is empty; send some text.')
  return {
    owner,
    family: 'agent',
    input: regenerates ? '' : input,
    earlier: regenerates ? [] : body.messages.slice(0, -1).flatMap(earlierOf),
    conversationId: body.id,
    whenBusy: 'queue',
    idempotency,
    ...(regenerates ? { regenerate: true as const } : {}),
    ...defined({ agentId: body.agentId, model: body.model, context: body.context ?? undefined }),
  }
}

function earlierOf(message: UiMessageOfClient): EarlierMessage[] {
  if (message.role === 'system') return []
  const content = message.parts.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
  return content === '' ? [] : [{ role: message.role, content }]
}

/** Data parts belong to the client; any other part of a question is content. */
function textOf({ parts }: UiMessageOfClient): string {
  return parts
    .map((part) => {
      if (part.type.startsWith('data-')) return ''
      if (part.type === 'text' && part.text !== undefined) return part.text
      throw new AppError(
        'unsupported_content',
        `Content of type ${JSON.stringify(part.type)} is not supported here; send text.`,
      )
    })
    .join('')
}
