// The body of a question: the form of the chat's own client (`last_message` as a
// list of pairs) and a simple one (`message`); and what it asks of a run.

import { z } from 'zod'
import { chunksDialect, type ChunksState } from '../../dialects/chunks/chunks.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Models } from '../../models/model.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { Services } from '../routes.ts'
import { clientFields, optionalFlag, optionalIdField } from './client.ts'

const pair = z.tuple([z.string().max(200), z.string()])
const name = z.string().max(200).nullish()

export const chatBody = z
  .object({
    ...clientFields,
    message: z.string().nullish().describe('The question.'),
    last_message: z
      .union([z.array(pair).max(10_000), pair, z.string()])
      .nullish()
      .describe('The question as [["User", text]]; instead of message.'),
    conversation_id: optionalIdField.describe(
      'Your name for the conversation, or the id that the server gave it. Nothing starts a new one.',
    ),
    config_name: name.describe('One of GET /api/get_configs; nothing means the default.'),
    is_refresh: optionalFlag.describe(
      'Answer the last question of the conversation again; the old answer stays stored.',
    ),
    client_sent_msg_ts: z
      .number()
      .nullish()
      .describe(
        'When the client sent this, in epoch milliseconds. The same question again with the same time, to another configuration, is a second answer to it for /api/ab/create.',
      ),
    client_timeout: z
      .number()
      .nullish()
      .describe('How long the client waits, in milliseconds; nothing means for ever.'),
    include_agent_steps: optionalFlag.describe('false: no chunk frames.'),
    include_tool_steps: optionalFlag.describe('false: no tool frames.'),
    provider: name,
    model: name.describe('Instead of the model of the configuration, for this request only.'),
    when_busy: z
      .enum(['queue', 'reject', 'cancel'])
      .nullish()
      .describe('What to do while an answer is under way in the conversation.'),
    on_disconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What closing the connection means for the run: continue or cancel. Nothing: as the server is set up (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .meta({ id: 'QuestionRequest' })

export type ChatBody = z.infer<typeof chatBody>

const titleChars = 20

/** Everything but the idempotency key, which is a header. */
export function toStart(
  body: ChatBody,
  owner: string,
  { clock, models }: Pick<Services, 'clock' | 'models'>,
): Omit<StartRequest, 'idempotency'> {
  refuseLateRequest(body, clock.now())
  const again = body.is_refresh === true
  const { input, earlier } = again ? { input: '', earlier: [] } : questionOf(body)
  if (again && body.conversation_id === undefined) {
    throw new AppError(
      'nothing_to_regenerate',
      'is_refresh needs the conversation_id of the conversation whose last question is to be answered again.',
    )
  }
  const model = modelOf(body, models)
  return {
    owner,
    family: 'chat-api',
    input,
    earlier,
    whenBusy: body.when_busy ?? 'queue',
    ...configOf(body),
    ...(again ? { regenerate: true as const } : { title: titleOf(input), ...sentAtOf(body) }),
    ...(body.conversation_id === undefined ? {} : { conversationId: body.conversation_id }),
    ...(model === undefined ? {} : { model }),
    ...(body.on_disconnect == null ? {} : { onDisconnect: body.on_disconnect }),
  }
}

/** Zero is what clients send that do not know the time. */
function sentAtOf({ client_sent_msg_ts: sentAt }: ChatBody): { sentAt?: number } {
  return sentAt == null || sentAt <= 0 ? {} : { sentAt }
}

/** Every run of this family has a configuration; the service knows which is the default. */
function configOf({ config_name }: ChatBody): { config: string | null } {
  return { config: config_name == null || config_name.trim() === '' ? null : config_name.trim() }
}

/** A client that does not say when it sent the message, or how long it waits, waits for ever. */
function refuseLateRequest({ client_sent_msg_ts: sentAt, client_timeout: timeoutMs }: ChatBody, nowMs: number): void {
  if (sentAt == null || timeoutMs == null || timeoutMs <= 0) return
  if (nowMs - sentAt > timeoutMs) {
    throw new AppError(
      'client_timed_out',
      'The message reached the server later than the client was going to wait; send it again.',
    )
  }
}

function questionOf(body: ChatBody): Pick<StartRequest, 'input' | 'earlier'> {
  const given = body.message ?? body.last_message
  const pairs =
    typeof given === 'string' ? [['User', given] as const] : given == null ? [] : isPair(given) ? [given] : given
  const input = pairs.at(-1)?.[1] ?? ''
  if (input.trim() === '') {
    throw new AppError(
      'messages_or_prompt_required',
      'There is no question; send message, or last_message as [["User", text]].',
    )
  }
  const earlier = pairs.slice(0, -1).map(([sender, content]) => ({
    role: sender.toLowerCase() === 'user' ? ('user' as const) : ('assistant' as const),
    content,
  }))
  return { input, earlier: earlier.filter(({ content }) => content !== '') }
}

function isPair(given: Exclude<ChatBody['last_message'], string | null | undefined>): given is [string, string] {
  return given.length === 2 && typeof given[0] === 'string'
}

/** A provider that is named must be there: a model may have any name, also one that begins like another provider. */
function modelOf({ provider, model }: ChatBody, models: Pick<Models, 'list'>): string | undefined {
  const wanted = { provider: provider?.trim() ?? '', model: model?.trim() ?? '' }
  if (wanted.provider === '') return wanted.model === '' ? undefined : wanted.model
  const known = models.list().map((one) => one.provider)
  if (!known.includes(wanted.provider)) {
    throw new AppError(
      'unknown_model',
      `There is no provider ${JSON.stringify(wanted.provider)}; known are ${known.join(', ')}.`,
    )
  }
  if (wanted.model === '') throw new AppError('unknown_model', 'provider alone names no model; send model as well.')
  return wanted.model.startsWith(`${wanted.provider}/`) ? wanted.model : `${wanted.provider}/${wanted.model}`
}

function titleOf(input: string): string {
  const characters = [...input.replace(/\s+/g, ' ').trim()]
  return characters.length > titleChars ? `${characters.slice(0, titleChars).join('')}...` : characters.join('')
}

/** The same options give the same dialect, so that readers at the same place share bytes. */
export function dialectFor(
  body: Pick<ChatBody, 'include_agent_steps' | 'include_tool_steps'>,
  accept: string | undefined,
): Dialect<ChunksState> {
  return chunksDialect({
    agentSteps: body.include_agent_steps ?? true,
    toolSteps: body.include_tool_steps ?? true,
    framing: (accept ?? '').toLowerCase().includes('application/x-ndjson') ? 'ndjson' : 'sse',
  })
}
