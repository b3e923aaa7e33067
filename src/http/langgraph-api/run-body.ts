// The body of a LangGraph run, and what it means here. Fields that would change what the run does, and
// that this server does not have, are refused; fields about LangGraph's own storage are ignored.

import { z } from 'zod'
import { type StreamMode, defaultModes, streamModes } from '../../dialects/langgraph/langgraph.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import type { EarlierMessage, StartRequest, WhenBusy } from '../../runs/start-request.ts'
import { readContent } from '../content-parts.ts'
import { jsonValue } from '../json-value.ts'
import { idParam, type Services } from '../routes.ts'

const message = z
  .object({
    type: z.string().nullish(),
    role: z.string().nullish(),
    content: z.unknown().optional(),
    id: z.string().max(200).nullish(),
  })
  .loose()

/** What LangChain makes of an instance of a message class as JSON. */
const serialisedMessage = z
  .object({ lc: z.literal(1), type: z.literal('constructor'), id: z.array(z.string()).min(1), kwargs: message })
  .transform(({ id, kwargs }) => ({ ...kwargs, type: id.at(-1) }))

/** The forms that LangGraph takes for a message. */
const anyMessage = z.union([
  serialisedMessage,
  message,
  z.string().transform((content) => ({ type: 'human', content })),
  z.tuple([z.string(), z.unknown()]).transform(([role, content]) => ({ role, content })),
])

const modeList = z.union([z.string().max(50), z.array(z.string().max(50)).max(20)]).nullish()

export const runBody = z
  .object({
    assistant_id: idParam.describe('The id of an agent.'),
    input: z.unknown().optional(),
    command: z
      .object({ resume: jsonValue.optional(), update: z.unknown().optional(), goto: z.unknown().optional() })
      .loose()
      .nullish(),
    stream_mode: modeList,
    multitask_strategy: z.enum(['reject', 'enqueue', 'interrupt', 'rollback']).nullish(),
    on_disconnect: z.enum(['continue', 'cancel']).nullish(),
    if_not_exists: z.enum(['create', 'reject']).nullish(),
    config: z
      .object({ configurable: z.record(z.string(), z.unknown()).nullish() })
      .loose()
      .nullish(),
    context: z.record(z.string(), z.unknown()).nullish(),
    checkpoint: z
      .object({ checkpoint_id: z.string().max(200).nullish() })
      .loose()
      .nullish(),
    checkpoint_id: z.string().max(200).nullish(),
    interrupt_before: z.unknown().optional(),
    interrupt_after: z.unknown().optional(),
    webhook: z.string().nullish(),
    after_seconds: z.number().nullish(),
    feedback_keys: z.array(z.string()).nullish(),
  })
  .loose()

export type RunBody = z.infer<typeof runBody>

export const streamModeQuery = modeList

const busyOf: Readonly<Record<NonNullable<RunBody['multitask_strategy']>, WhenBusy | undefined>> = {
  reject: 'reject',
  enqueue: 'queue',
  interrupt: 'cancel',
  rollback: undefined,
}

/** The stream modes of a request that names none and starts a run. A request that joins a run gets all modes then. */
export const modesOfRun: readonly StreamMode[] = ['values']

/** Throws `langgraph_unsupported`. */
export function modesOf(
  given: string | readonly string[] | null | undefined,
  ifNone: readonly StreamMode[] = defaultModes,
): readonly StreamMode[] {
  // A query has the list as text if a client sends it as JSON.
  const names = given == null ? [] : typeof given === 'string' ? [given] : given
  if (names.length === 0) return ifNone
  return names.map((name) => {
    const known = streamModes.find((mode) => mode === name)
    if (known === undefined) {
      throw notInSubset(`The stream mode ${JSON.stringify(name)} is not served; use ${streamModes.join(', ')}.`)
    }
    return known
  })
}

export function notInSubset(sentence: string): AppError {
  return new AppError('langgraph_unsupported', sentence)
}

/** Throws if the body asks for something that this server does not have. */
export function checkRunBody(body: RunBody): void {
  if (body.multitask_strategy === 'rollback') {
    throw notInSubset(
      'multitask_strategy "rollback" is not served; "interrupt" cancels the run before, and keeps its messages.',
    )
  }
  for (const name of ['interrupt_before', 'interrupt_after'] as const) {
    const value = body[name]
    if (value != null && !(Array.isArray(value) && value.length === 0)) {
      throw notInSubset(`${name} is not served; calls of tools that need consent interrupt by themselves.`)
    }
  }
  if (body.webhook != null && body.webhook !== '') throw notInSubset('webhook is not served; join the run instead.')
  if (body.after_seconds != null && body.after_seconds > 0)
    throw notInSubset('after_seconds is not served; start the run later.')
  const { update, goto } = body.command ?? {}
  // LangGraph's own clients send an empty list of nodes with every command.
  if (update != null || !(goto == null || (Array.isArray(goto) && goto.length === 0))) {
    throw notInSubset('Of a command only "resume" is served; state cannot be updated, and there is no graph to go to.')
  }
}

/** The messages of the input; empty if there is none. */
function inputMessages(input: unknown): z.infer<typeof message>[] {
  if (typeof input === 'string') return [{ type: 'human', content: input }]
  const list = (input as { messages?: unknown } | null | undefined)?.messages
  const found = z
    .array(anyMessage)
    .max(10_000)
    .safeParse(Array.isArray(list) ? list : list == null ? [] : [list])
  if (!found.success)
    throw new AppError(
      'messages_invalid',
      'input.messages must be a list of messages: {"type", "content"}, ["user", "…"], or a text.',
    )
  return found.data
}

const roles: Readonly<Record<string, 'user' | 'assistant' | 'system' | 'tool'>> = {
  human: 'user',
  user: 'user',
  HumanMessage: 'user',
  HumanMessageChunk: 'user',
  ai: 'assistant',
  assistant: 'assistant',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
  system: 'system',
  developer: 'system',
  SystemMessage: 'system',
  tool: 'tool',
  ToolMessage: 'tool',
}

/** The run that the body asks for. The last message is the question; those before it count only in an empty thread. */
export async function startRequestOf(
  body: RunBody,
  {
    owner,
    threadId,
    files,
    idempotency,
  }: { owner: string; threadId: string | undefined; files: Services['files'] } & Pick<StartRequest, 'idempotency'>,
): Promise<StartRequest> {
  const messages = inputMessages(body.input)
  const question = messages.at(-1)
  if (question === undefined || roleOf(question) !== 'user') {
    throw new AppError(
      'messages_or_prompt_required',
      'input.messages must end with a message of type "human". To answer an interrupt, send command.resume.',
    )
  }
  const { text, parts } = await readContent(question.content, { files, owner })
  if (text.trim() === '')
    throw new AppError('messages_or_prompt_required', 'The last message is empty; send some text.')
  const earlier: EarlierMessage[] = []
  const instructions: string[] = []
  for (const one of messages.slice(0, -1)) {
    const { text: content } = await readContent(one.content, { files, owner, textOnly: true })
    const role = roleOf(one)
    if (role === 'system') instructions.push(content)
    // Results of tools and empty messages are part of what the model said about them.
    else if (role !== 'tool' && content !== '') earlier.push({ role, content })
  }
  return {
    owner,
    family: 'langgraph',
    input: text,
    earlier,
    whenBusy: busyOf[body.multitask_strategy ?? 'enqueue'] ?? 'queue',
    idempotency,
    agentId: body.assistant_id,
    ...defined({
      parts,
      conversationId: threadId,
      instructions: instructions.length === 0 ? undefined : instructions.join('\n\n'),
      context: body.context ?? undefined,
      onDisconnect: body.on_disconnect ?? undefined,
      model: modelOf(body),
    }),
  }
}

/** `config.configurable.model`: `provider/model`. */
function modelOf({ config }: RunBody): string | undefined {
  const model = config?.configurable?.['model']
  return typeof model === 'string' && model.trim() !== '' ? model.trim().slice(0, 200) : undefined
}

function roleOf(one: z.infer<typeof message>): 'user' | 'assistant' | 'system' | 'tool' {
  const name = one.type ?? one.role ?? ''
  const role = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (role === undefined) {
    throw new AppError(
      'messages_invalid',
      `A message of type ${JSON.stringify(name.slice(0, 40))} is not taken here; send human messages.`,
    )
  }
  return role
}

/** Undefined if the body resumes nothing; null is "not given". */
export function resumeOf({ command }: RunBody): NonNullable<JsonValue> | undefined {
  return command?.resume ?? undefined
}
