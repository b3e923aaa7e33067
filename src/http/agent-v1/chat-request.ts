// The body of POST /v1/agent/chat: `messages`, `prompt` or `input`, and settings.
// Parsing is strict about types and forgiving about null, which clients send for
// "not given".

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import { optionalId } from '../routes.ts'

/** Idempotency keys are per owner and route. */
const chatRouteName = 'POST /v1/agent/chat'

const contentPart = z.object({ type: z.string(), text: z.string().optional() }).loose()

const message = z
  .object({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: z.union([z.string(), z.array(contentPart).max(1000), z.null()]).optional(),
  })
  .loose()

export const chatBody = z
  .object({
    messages: z
      .array(message)
      .max(10_000)
      .nullish()
      .describe('Chat history in the OpenAI format; the last user message is the input.'),
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
  const { input, earlier } = inputOf(body)
  const maxTokens = body.maxTokens ?? body.max_tokens
  return {
    owner,
    family: 'agent',
    input,
    earlier,
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

/** Messages win over prompt; the last user message is the input, what stands before it is history. */
function inputOf(body: ChatBody): Pick<StartRequest, 'input' | 'earlier'> {
  const messages = body.messages ?? []
  if (messages.length > 0) {
    const last = messages.findLastIndex((candidate) => candidate.role === 'user')
    if (last === -1)
      throw new AppError(
        'messages_or_prompt_required',
        'messages holds no message with role "user"; add one, or send prompt.',
      )
    const input = textOf(messages[last]?.content)
    if (input.trim() === '')
      throw new AppError('messages_or_prompt_required', 'The last user message is empty; send some text.')
    const earlier = messages.slice(0, last).flatMap((candidate) => {
      // Instructions and tool results come from the server only: a client cannot give itself either.
      if (candidate.role !== 'user' && candidate.role !== 'assistant') return []
      const content = textOf(candidate.content)
      return content === '' ? [] : [{ role: candidate.role, content }]
    })
    return { input, earlier }
  }
  const prompt = [body.prompt, body.input].find((text) => text != null && text.trim() !== '')
  if (prompt == null) throw new AppError('messages_or_prompt_required', 'Send messages (not empty), prompt or input.')
  return { input: prompt, earlier: [] }
}

function textOf(
  content: ChatBody['messages'] extends infer M
    ? M extends (infer One)[]
      ? One extends { content?: infer C }
        ? C
        : never
      : never
    : never,
): string {
  if (content == null) return ''
  if (typeof content === 'string') return content
  return content
    .map((part) => {
      if (part.type !== 'text' || part.text === undefined) {
        throw new AppError(
          'unsupported_content',
          `Content of type ${JSON.stringify(part.type)} is not supported here; send text.`,
        )
      }
      return part.text
    })
    .join('')
}
