// The body of POST /v1/agent/chat: `messages`, `prompt` or `input`, and settings.
// Parsing is strict about types and forgiving about null, which clients send for
// "not given".

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import { optionalId } from '../routes.ts'
import { messageList, type MessageListParts, readMessageList } from './message-list.ts'

/** Idempotency keys are per owner and route. */
const chatRouteName = 'POST /v1/agent/chat'

export const chatBody = z
  .object({
    messages: messageList,
    prompt: z.string().nullish().describe('One text, instead of messages.'),
    input: z.string().nullish().describe('The same as prompt.'),
    context: z
      .record(z.string(), z.unknown())
      .nullish()
      .describe('Your own state; the model reads it. composer.enabledTools limits the tools.'),
    model: z.string().max(200).nullish().describe('provider/model, or a model of the default provider.'),
    temperature: z.number().min(0).max(2).nullish(),
    maxTokens: z.number().int().positive().nullish(),
    max_tokens: z.number().int().positive().nullish(),
    userId: z.string().max(200).nullish().describe('Counts only where nobody is logged in.'),
    conversationId: optionalId().describe(
      'Your name for the conversation; it counts for you only. If you have none of this name, it is created. Without conversationId and sessionId a new one starts.',
    ),
    sessionId: optionalId().describe(
      'The same as conversationId; with both, conversationId counts and this becomes a second name.',
    ),
    agentId: optionalId(),
    whenBusy: z
      .enum(['queue', 'reject', 'cancel'])
      .nullish()
      .describe('What to do while another run is under way in the conversation.'),
    onDisconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What closing the connection means for the run: continue or cancel. Nothing: as the server is set up (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .loose()
  .meta({ id: 'ChatRequest' })

export type ChatBody = z.infer<typeof chatBody>

export function toStartRequest(
  body: ChatBody,
  owner: string,
  idempotencyKey: string | undefined,
  rawBody: unknown,
): StartRequest {
  const maxTokens = body.maxTokens ?? body.max_tokens
  return {
    owner,
    family: 'agent',
    ...inputOf(body),
    whenBusy: body.whenBusy ?? 'queue',
    idempotency: idempotencyKey === undefined ? null : { key: idempotencyKey, route: chatRouteName, body: rawBody },
    ...(body.agentId === undefined ? {} : { agentId: body.agentId }),
    ...(body.conversationId === undefined ? {} : { conversationId: body.conversationId }),
    ...(body.sessionId === undefined ? {} : { sessionId: body.sessionId }),
    ...(body.context == null ? {} : { context: body.context }),
    ...(body.model == null || body.model.trim() === '' ? {} : { model: body.model.trim() }),
    ...(body.temperature == null ? {} : { temperature: body.temperature }),
    ...(maxTokens == null ? {} : { maxTokens }),
    ...(body.onDisconnect == null ? {} : { onDisconnect: body.onDisconnect }),
  }
}

/** Messages win over prompt. */
function inputOf(body: ChatBody): MessageListParts {
  if (body.messages != null && body.messages.length > 0) return readMessageList(body.messages)
  const prompt = [body.prompt, body.input].find((text) => text != null && text.trim() !== '')
  if (prompt == null) throw new AppError('messages_or_prompt_required', 'Send messages (not empty), prompt or input.')
  return { input: prompt, earlier: [] }
}
