// The body of POST /v1/agent/chat: `messages`, `prompt` or `input`, and settings. Types are
// checked strictly, but null is accepted everywhere, because clients send it for "not given".

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { providerOptions } from '../../journal/provider-options.ts'
import { requestedProviderTools } from '../../journal/provider-tools.ts'
import { clientTools } from '../client-tools-field.ts'
import { defined } from '../../kit/defined.ts'
import type { JsonValue } from '../../journal/event.ts'
import { modelChoice } from '../../journal/model-chain.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import { refuseStraySettings } from '../stray-settings.ts'
import { optionalId, type Services } from '../routes.ts'
import { messageList, type ParsedMessageList, readMessageList } from './message-list.ts'

/** The scope of an idempotency key is one owner and this route. */
const chatRouteName = 'POST /v1/agent/chat'

export const chatBody = z
  .object({
    messages: messageList,
    prompt: z.string().nullish().describe('One text; use it instead of messages.'),
    input: z.string().nullish().describe('The same as prompt.'),
    regenerate: z
      .boolean()
      .nullish()
      .describe(
        'Answers the last question of the conversation again, instead of a new one. The new answer replaces the old one when it is complete.',
      ),
    context: z
      .record(z.string(), z.unknown())
      .nullish()
      .describe(
        'The state of your application; the model reads it. composer.enabledTools limits which tools the run may use.',
      ),
    model: z
      .union([z.string().max(200), modelChoice])
      .nullish()
      .describe(
        'provider/model, or only the name of the model: one of the default provider, or a well-known one. A list: the next one is asked if the one before cannot answer.',
      ),
    engine: z
      .string()
      .max(200)
      .nullish()
      .describe('The engine that answers; absent means that of the agent, or the server’s default.'),
    output: z
      .object({ schema: z.record(z.string(), z.unknown()) })
      .nullish()
      .describe('The final answer is JSON that fits this JSON Schema; agent.end has it parsed as `data`.'),
    clientTools: clientTools.nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    maxTokens: z.number().int().positive().nullish(),
    max_tokens: z.number().int().positive().nullish(),
    providerOptions: providerOptions
      .nullish()
      .describe('Options of the provider by name, for example {"anthropic": {"effort": "high"}}.'),
    providerTools: requestedProviderTools
      .nullish()
      .describe(
        'Tools that the provider of the model runs itself while it answers. Absent means those of the agent; [] means none.',
      ),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
    conversationId: optionalId().describe(
      'Your name for the conversation; each user has their own names. If you have no conversation with this name, it is created. Without conversationId and sessionId, a new conversation starts.',
    ),
    sessionId: optionalId().describe(
      'The same as conversationId. If both are sent, conversationId is used and this becomes a second name of the conversation.',
    ),
    agentId: optionalId(),
    whenBusy: z
      .enum(['queue', 'reject', 'cancel'])
      .nullish()
      .describe('What to do if another run of the conversation has not ended yet.'),
    onDisconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What happens to the run when the client closes the connection. The default is the setting of the server (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .loose()
  .meta({ id: 'ChatRequest' })

/** The fields that decide how a chat is answered. An unknown field whose name is close to one of them is refused. */
export const chatSettings = [
  'model',
  'temperature',
  'maxTokens',
  'max_tokens',
  'providerOptions',
  'providerTools',
  'clientTools',
  'engine',
  'output',
  'whenBusy',
  'onDisconnect',
] as const

export type ChatBody = z.infer<typeof chatBody>

export async function toStartRequest(
  services: Pick<Services, 'files' | 'conversations'>,
  body: ChatBody,
  owner: string,
  idempotencyKey: string | undefined,
  rawBody: unknown,
): Promise<StartRequest> {
  refuseStraySettings(body, Object.keys(chatBody.shape), chatSettings)
  return {
    owner,
    family: 'agent',
    ...(body.regenerate === true ? questionAgain(body) : await inputOf(services, body, owner)),
    whenBusy: body.whenBusy ?? 'queue',
    idempotency: idempotencyKey === undefined ? null : { key: idempotencyKey, route: chatRouteName, body: rawBody },
    ...defined({
      agentId: body.agentId,
      conversationId: body.conversationId,
      sessionId: body.sessionId,
      context: body.context ?? undefined,
      model: modelOf(body.model),
      engine: body.engine == null || body.engine.trim() === '' ? undefined : body.engine.trim(),
      // The body is parsed JSON, so its values are JSON values.
      output: body.output == null ? undefined : { schema: body.output.schema as Record<string, JsonValue> },
      clientTools: body.clientTools ?? undefined,
      temperature: body.temperature ?? undefined,
      maxTokens: body.maxTokens ?? body.max_tokens ?? undefined,
      providerOptions: body.providerOptions ?? undefined,
      providerTools: body.providerTools ?? undefined,
      onDisconnect: body.onDisconnect ?? undefined,
    }),
  }
}

function questionAgain(body: ChatBody): Pick<StartRequest, 'input' | 'earlier' | 'regenerate'> {
  if (body.conversationId === undefined && body.sessionId === undefined) {
    throw new AppError(
      'nothing_to_regenerate',
      'regenerate needs the conversationId of the conversation whose last question is to be answered again.',
    )
  }
  return { input: '', earlier: [], regenerate: true }
}

function modelOf(model: ChatBody['model']): StartRequest['model'] {
  if (Array.isArray(model)) return model.map((name) => name.trim())
  return model == null || model.trim() === '' ? undefined : model.trim()
}

/** `messages` takes precedence over `prompt`, and `prompt` over `input`. */
async function inputOf(
  { files, conversations }: Pick<Services, 'files' | 'conversations'>,
  body: ChatBody,
  owner: string,
): Promise<ParsedMessageList> {
  if (body.messages != null && body.messages.length > 0) {
    const name = body.conversationId ?? body.sessionId
    const isStored = async () => name !== undefined && (await conversations.find(owner, name)) !== undefined
    return await readMessageList(body.messages, { files, owner, isStored })
  }
  const prompt = [body.prompt, body.input].find((text) => text != null && text.trim() !== '')
  if (prompt == null) throw new AppError('messages_or_prompt_required', 'Send messages (not empty), prompt or input.')
  return { input: prompt, earlier: [] }
}
