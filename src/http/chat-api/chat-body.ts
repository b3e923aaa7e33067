// The body of a question in the chat API, and its translation to a start request. The text
// is in `message`, or in `last_message` as a list of [sender, text] pairs.

import { z } from 'zod'
import { chunksDialect, type ChunksState, type Framing } from '../../dialects/chunks/chunks.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import type { Models } from '../../models/model.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { Services } from '../routes.ts'
import { clientFields, optionalFlag, optionalIdField } from './client.ts'

const pair = z.tuple([z.string().max(200), z.string()])
const name = z.string().max(200).nullish()

export const questionBody = z
  .object({
    ...clientFields,
    message: z.string().nullish().describe('The question.'),
    last_message: z
      .union([z.array(pair).max(10_000), pair, z.string()])
      .nullish()
      .describe('The question as [["User", text]]; use it instead of message.'),
    conversation_id: optionalIdField.describe(
      'Your name for the conversation, or the id that the server gave it. If it is left out, a new conversation starts.',
    ),
    config_name: name.describe(
      'The id of a configuration that GET /api/get_configs lists; the default configuration if it is left out.',
    ),
    is_refresh: optionalFlag.describe(
      'true answers the last question of the conversation again; the old answer stays stored.',
    ),
    client_sent_msg_ts: z
      .number()
      .nullish()
      .describe(
        'When the client sent this, in epoch milliseconds. If you send the same question with the same time to another configuration, its answer counts as a second answer to that question, for /api/ab/create.',
      ),
    client_timeout: z
      .number()
      .nullish()
      .describe('How long the client waits, in milliseconds; no limit if it is left out.'),
    include_agent_steps: optionalFlag.describe('false leaves out the chunk frames.'),
    include_tool_steps: optionalFlag.describe('false leaves out the tool frames.'),
    provider: name,
    model: name.describe('Replaces the model of the configuration, for this request only.'),
    when_busy: z
      .enum(['queue', 'reject', 'cancel'])
      .nullish()
      .describe('What to do if another answer of the conversation is not complete yet.'),
    on_disconnect: z
      .enum(['continue', 'cancel'])
      .nullish()
      .describe(
        'What happens to the run when the client closes the connection. The default is the setting of the server (POLYLOG_ON_DISCONNECT).',
      ),
  })
  .meta({ id: 'QuestionRequest' })

export type QuestionBody = z.infer<typeof questionBody>

const titleChars = 20

/** Leaves out the idempotency key, because it is in a header. */
export function toStart(
  body: QuestionBody,
  owner: string,
  { clock, models }: Pick<Services, 'clock' | 'models'>,
): Omit<StartRequest, 'idempotency'> {
  refuseLateRequest(body, clock.now())
  const regenerates = body.is_refresh === true
  const { input, earlier } = regenerates ? { input: '', earlier: [] } : questionOf(body)
  if (regenerates && body.conversation_id === undefined) {
    throw new AppError(
      'nothing_to_regenerate',
      'is_refresh needs the conversation_id of the conversation whose last question is to be answered again.',
    )
  }
  return {
    owner,
    family: 'chat-api',
    input,
    earlier,
    whenBusy: body.when_busy ?? 'queue',
    ...configOf(body),
    ...(regenerates ? { regenerate: true as const } : { title: titleOf(input), ...sentAtOf(body) }),
    ...defined({
      conversationId: body.conversation_id,
      model: modelOf(body, models),
      onDisconnect: body.on_disconnect ?? undefined,
    }),
  }
}

/** Clients that do not know the time send 0. */
function sentAtOf({ client_sent_msg_ts: sentAt }: QuestionBody): { sentAt?: number } {
  return sentAt == null || sentAt <= 0 ? {} : { sentAt }
}

/** Null means the default configuration, which the run service looks up. */
function configOf({ config_name }: QuestionBody): { config: string | null } {
  return { config: config_name == null || config_name.trim() === '' ? null : config_name.trim() }
}

/** Throws if the client has stopped waiting. Without a send time or a timeout there is no deadline to check. */
function refuseLateRequest(
  { client_sent_msg_ts: sentAt, client_timeout: timeoutMs }: QuestionBody,
  nowMs: number,
): void {
  if (sentAt == null || timeoutMs == null || timeoutMs <= 0) return
  if (nowMs - sentAt > timeoutMs) {
    throw new AppError(
      'client_timed_out',
      'The message reached the server later than the client was going to wait; send it again.',
    )
  }
}

function questionOf(body: QuestionBody): Pick<StartRequest, 'input' | 'earlier'> {
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

function isPair(given: Exclude<QuestionBody['last_message'], string | null | undefined>): given is [string, string] {
  return given.length === 2 && typeof given[0] === 'string'
}

/** Checks `provider` separately, because the name of a model may start with the name of another provider. */
function modelOf({ provider, model }: QuestionBody, models: Pick<Models, 'list'>): string | undefined {
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

/** The same options give the same dialect name, so readers at the same position share the encoded bytes. */
export function dialectFor(
  body: Pick<QuestionBody, 'include_agent_steps' | 'include_tool_steps'>,
  accept: string | undefined,
): Dialect<ChunksState> {
  return chunksDialect({
    agentSteps: body.include_agent_steps ?? true,
    toolSteps: body.include_tool_steps ?? true,
    framing: framingFor(accept),
  })
}

export function framingFor(accept: string | undefined): Framing {
  return (accept ?? '').toLowerCase().includes('application/x-ndjson') ? 'ndjson' : 'sse'
}
