// The body of POST /v1/chat/completions, and the run that it asks for.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { mergedOptions, providerOptions } from '../../journal/provider-options.ts'
import { defined } from '../../kit/defined.ts'
import { fingerprint } from '../../runs/run-acceptance.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import { messageList, readMessageList } from '../agent-v1/message-list.ts'
import type { Services } from '../routes.ts'
import type { CallAnswer } from './answered-calls.ts'
import {
  agentOrModel,
  functionFields,
  type FunctionTool,
  metadataField,
  modelField,
  passedOn,
  samplingFields,
  samplingOf,
  toolSettings,
  unsupported,
  wantedOutput,
} from './request-settings.ts'

const idempotencyRoute = 'POST /v1/chat/completions'

export const chatCompletionBody = z
  .object({
    model: modelField,
    messages: messageList.unwrap().unwrap().min(1),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).loose().nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    max_tokens: z.number().int().positive().nullish(),
    max_completion_tokens: z.number().int().positive().nullish(),
    ...samplingFields,
    reasoning_effort: z.string().max(40).nullish(),
    providerOptions: providerOptions.nullish().describe('Options of the provider by name, as on /v1/agent/chat.'),
    parallel_tool_calls: z.boolean().nullish(),
    tools: z
      .array(z.object({ type: z.string(), function: z.object(functionFields).loose().optional() }).loose())
      .max(1000)
      .nullish()
      .describe(
        'Tools that your client executes. The answer ends with its calls; send their results as tool messages.',
      ),
    tool_choice: z.unknown().optional().describe('"auto", "none", "required" or a function.'),
    n: z.number().int().nullish().describe('Only 1.'),
    response_format: z
      .object({
        type: z.string(),
        json_schema: z
          .object({ schema: z.record(z.string(), z.unknown()).nullish() })
          .loose()
          .nullish(),
      })
      .loose()
      .nullish(),
    metadata: metadataField
      .nullish()
      .describe('conversation_id names a stored conversation, which the answer belongs to.'),
    onDisconnect: z.enum(['continue', 'cancel']).nullish(),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
  })
  .loose()
  .meta({ id: 'ChatCompletionRequest' })

export type ChatCompletionBody = z.infer<typeof chatCompletionBody>

/** Fields that would change the answer and are not supported, with the values that change nothing. */
const refusedFields: readonly { name: string; harmless: readonly unknown[]; sentence: string }[] = [
  { name: 'n', harmless: [1], sentence: 'one request gives one answer; send n requests instead.' },
  { name: 'logprobs', harmless: [false], sentence: 'log probabilities are not available; leave it out.' },
  { name: 'top_logprobs', harmless: [0], sentence: 'log probabilities are not available; leave it out.' },
  { name: 'logit_bias', harmless: [], sentence: 'it is not supported; leave it out.' },
  { name: 'functions', harmless: [], sentence: 'this form of tools is no longer supported; use tools.' },
  { name: 'function_call', harmless: ['none', 'auto'], sentence: 'it is no longer supported; use tool_choice.' },
  { name: 'audio', harmless: [], sentence: 'answers are text only; leave it out.' },
  { name: 'web_search_options', harmless: [], sentence: 'it is not supported; use an agent with a search tool.' },
  { name: 'verbosity', harmless: ['medium'], sentence: 'it is not supported; ask for a short answer in the messages.' },
]

/** Throws `unsupported_parameter`. */
export function checkChatFields(body: ChatCompletionBody): void {
  const fields: Record<string, unknown> = body
  for (const { name, harmless, sentence } of refusedFields) {
    const value = fields[name]
    if (value != null && !harmless.includes(value) && !isEmpty(value)) throw unsupported(name, sentence)
  }
  const { modalities } = fields
  if (Array.isArray(modalities) && modalities.some((one) => one !== 'text'))
    throw unsupported('modalities', 'answers are text only; send ["text"] or leave it out.')
  const last = body.messages.at(-1)?.role
  if (last === 'assistant' || last === 'function') {
    throw new AppError('messages_invalid', 'messages: the list must end with a message of the user or of a tool.')
  }
}

/** `{}` and `[]` mean "not given". */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

export async function toChatStart(
  body: ChatCompletionBody,
  owner: string,
  idempotencyKey: string | undefined,
  services: Pick<Services, 'catalogue' | 'models' | 'files' | 'conversations'>,
): Promise<StartRequest> {
  const { response_format: format } = body
  const asked = agentOrModel(body.model, services)
  const conversationId = conversationOf(body)
  const { files, conversations } = services
  const isStored = async () =>
    conversationId !== undefined && (await conversations.find(owner, conversationId)) !== undefined
  return {
    owner,
    family: 'openai-chat',
    ...(await readMessageList(body.messages, { files, owner, isStored })),
    ...asked,
    whenBusy: 'queue',
    idempotency: idempotencyKey === undefined ? null : { key: idempotencyKey, route: idempotencyRoute, body },
    ...toolSettings(functionTools(body), body.tool_choice),
    echo: {
      model: body.model,
      include_usage: body.stream_options?.include_usage === true,
      messages: body.messages.length,
      fingerprint: requestFingerprint(body, body.messages.length),
    },
    ...defined({
      conversationId,
      temperature: body.temperature ?? undefined,
      sampling: samplingOf(body),
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
      output: wantedOutput(format && { type: format.type, schema: format.json_schema?.schema }, 'response_format'),
      providerOptions: mergedOptions(body.providerOptions ?? undefined, passedOn(asked, body, services)),
      onDisconnect: body.onDisconnect ?? undefined,
    }),
  }
}

/** Undefined: the run belongs to no conversation, and the messages of the request are its history. */
function conversationOf({ metadata }: ChatCompletionBody): string | undefined {
  const name = metadata?.['conversation_id']?.trim()
  return name === undefined || name === '' ? undefined : name.slice(0, 200)
}

function functionTools({ tools }: ChatCompletionBody): FunctionTool[] {
  return (tools ?? []).map(({ type, function: fields }, index) => {
    if (type !== 'function' || fields === undefined)
      throw unsupported(`tools[${index}]`, `tools of type ${JSON.stringify(type)} are not supported; use function.`)
    return fields
  })
}

/** Fields that do not change the answer. */
const passingFields = new Set([
  'messages',
  'stream',
  'stream_options',
  'metadata',
  'store',
  'user',
  'userId',
  'safety_identifier',
  'prompt_cache_key',
  'service_tier',
  'onDisconnect',
])

/** Two requests with the same fingerprint ask for the same: the first `count` messages and all settings are equal. */
export function requestFingerprint(body: ChatCompletionBody, count: number): string {
  const settings = Object.entries(body).filter(([name]) => !passingFields.has(name))
  return fingerprint({ settings: Object.fromEntries(settings), messages: body.messages.slice(0, count) })
}

/** The results at the end of the messages. */
export function chatAnswers({ messages }: ChatCompletionBody): CallAnswer[] {
  const from = messages.findLastIndex(({ role }) => role !== 'tool') + 1
  return messages.slice(from).map(({ tool_call_id: id, content }) => ({ id: id ?? '', output: toolText(content) }))
}

function toolText(content: ChatCompletionBody['messages'][number]['content']): string {
  if (content == null || typeof content === 'string') return content ?? ''
  return content.map(({ text = '' }) => text).join('')
}
