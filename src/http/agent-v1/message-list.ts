// Parses the `messages` of a chat request (OpenAI format) into the input, the earlier messages and the instructions of
// a run. Tool calls and results in the list are only history: the server never executes a call from the list, and
// never takes an entry as a user's decision.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import { isDeeperThan, valuesIn } from '../../kit/json-depth.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'
import { type ContentDependencies, readContent } from '../content-parts.ts'

/** As for the arguments that a model sends. They are text in the body, so the limits of the body do not count what is in them. */
const argumentsDepthMax = 100
const argumentsValuesMax = 100_000

const contentPart = z.object({ type: z.string(), text: z.string().optional(), refusal: z.string().optional() }).loose()

const called = z.object({ name: z.string().min(1).max(200), arguments: z.string().nullish() }).loose()

const chatMessage = z
  .object({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: z.union([z.string(), z.array(contentPart).max(1000), z.null()]).optional(),
    tool_calls: z
      .array(z.object({ id: z.string().min(1).max(200), function: called }).loose())
      .max(128)
      .nullish()
      .describe('In an assistant message: the tool calls. The tool messages after it hold their results.'),
    tool_call_id: z
      .string()
      .min(1)
      .max(200)
      .nullish()
      .describe('In a tool message: the id of the call whose result it holds.'),
  })
  .loose()

export const messageList = z
  .array(chatMessage)
  .max(10_000)
  .nullish()
  .describe(
    'Chat history in the OpenAI format. The last user message is the input; its content is a text, or a list of text, image and file parts in the shapes of OpenAI or of the AI SDK. If the list ends with tool results, the model continues from them. Messages with the role system are instructions for this run. If the conversation is already stored, the stored history is used.',
  )

type ChatMessage = z.infer<typeof chatMessage>

/** For all system messages of a list together. */
const instructionsCharsMax = 32 * 1024

export type ParsedMessageList = Pick<StartRequest, 'input' | 'parts' | 'earlier' | 'instructions' | 'continues'>

export type MessageListDependencies = Omit<ContentDependencies, 'textOnly'> & {
  /** Whether the conversation is stored. If it is, the earlier messages are not used, so their files are not stored. */
  isStored(): Promise<boolean>
}

/** `messages` must not be empty. */
export async function readMessageList(
  messages: readonly ChatMessage[],
  dependencies: MessageListDependencies,
): Promise<ParsedMessageList> {
  const instructions = instructionsOf(messages)
  const talk = messages.filter(({ role }) => !isInstruction(role))
  const common = instructions === '' ? {} : { instructions }
  if (talk.at(-1)?.role === 'tool') return { ...common, ...continuedFrom(await earlierOf(talk, dependencies)) }

  const last = talk.findLastIndex(({ role }) => role === 'user')
  if (last === -1)
    throw new AppError(
      'messages_or_prompt_required',
      'messages holds no message with role "user"; add one, or send prompt.',
    )
  // Read first, because the other messages are checked without storing anything.
  const earlier = await earlierOf(talk.slice(0, last), dependencies)
  const { text: input, parts } = await readContent(talk[last]?.content, dependencies)
  if (input.trim() === '')
    throw new AppError('messages_or_prompt_required', 'The last user message is empty; send some text.')
  return { ...common, input, ...defined({ parts }), earlier }
}

function isInstruction(role: ChatMessage['role']): boolean {
  return role === 'system' || role === 'developer'
}

function instructionsOf(messages: readonly ChatMessage[]): string {
  const text = messages
    .filter(({ role }) => isInstruction(role))
    .map(({ content }) => contentText(content).trim())
    .filter((content) => content !== '')
    .join('\n\n')
  if (text.length > instructionsCharsMax) {
    throw new AppError(
      'instructions_too_long',
      `The system messages hold ${text.length} characters in all; at most ${instructionsCharsMax} are allowed. Shorten them.`,
    )
  }
  return text
}

/** Throws if a call of the last assistant message has no result: the model cannot continue without it. */
function continuedFrom(earlier: EarlierMessage[]): ParsedMessageList {
  const asked = earlier.findLastIndex((entry) => entry.role === 'assistant' && entry.toolCalls !== undefined)
  const calls = earlier[asked]?.role === 'assistant' ? (earlier[asked].toolCalls ?? []) : []
  const answered = new Set(earlier.slice(asked + 1).flatMap((entry) => (entry.role === 'tool' ? [entry.callId] : [])))
  const open = calls.find(({ callId }) => !answered.has(callId))
  if (open !== undefined) {
    throw invalid(
      `the call ${JSON.stringify(open.callId)} has no result; send a tool message for each call of the assistant message, or end with a user message`,
    )
  }
  return { input: '', earlier, continues: true }
}

async function earlierOf(
  talk: readonly ChatMessage[],
  dependencies: MessageListDependencies,
): Promise<EarlierMessage[]> {
  const entries: EarlierMessage[] = []
  const hasFiles = talk.some(({ role, content }) => role === 'user' && Array.isArray(content))
  const textOnly = hasFiles && (await dependencies.isStored())
  /** The calls of the last assistant message that have no result yet. */
  let open = new Map<string, string>()
  let valuesLeft = argumentsValuesMax
  for (const message of talk) {
    if (message.role === 'user') {
      const { text, parts } = await readContent(message.content, { ...dependencies, textOnly })
      if (text !== '') entries.push({ role: 'user', content: text, ...defined({ parts }) })
      continue
    }
    const content = contentText(message.content)
    switch (message.role) {
      case 'assistant': {
        const toolCalls = (message.tool_calls ?? []).map((call) => {
          const text = call.function.arguments ?? ''
          valuesLeft -= valuesIn(text, valuesLeft)
          if (valuesLeft < 0) throw invalid(`the arguments of all calls have more than ${argumentsValuesMax} values`)
          return { callId: call.id, name: call.function.name, input: argumentsOf(call.id, text) }
        })
        open = new Map(toolCalls.map(({ callId, name }) => [callId, name]))
        if (open.size < toolCalls.length) throw invalid('two calls of one assistant message have the same id')
        if (toolCalls.length > 0) entries.push({ role: 'assistant', content, toolCalls })
        else if (content !== '') entries.push({ role: 'assistant', content })
        break
      }
      case 'tool': {
        const callId = message.tool_call_id ?? ''
        const name = open.get(callId)
        if (name === undefined) {
          throw invalid(
            `a tool message answers the call ${JSON.stringify(callId)}, which no assistant message before it made, or which has a result already; tool_call_id must be the id of one of its tool_calls`,
          )
        }
        open.delete(callId)
        entries.push({ role: 'tool', callId, name, content })
        break
      }
      default:
        // Role `function` is the deprecated form of `tool`. It has no call id to match with a call, so it is skipped.
        break
    }
  }
  return entries
}

function argumentsOf(callId: string, text: string): JsonValue {
  if (text.trim() === '') return {}
  if (isDeeperThan(text, argumentsDepthMax)) {
    throw invalid(`the arguments of the call ${JSON.stringify(callId)} are nested more than ${argumentsDepthMax} deep`)
  }
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    throw invalid(`the arguments of the call ${JSON.stringify(callId)} are not JSON`)
  }
}

function invalid(what: string): AppError {
  return new AppError('messages_invalid', `messages: ${what}.`)
}

/** Of a message that is not a user's: only text. */
function contentText(content: ChatMessage['content']): string {
  if (content == null) return ''
  if (typeof content === 'string') return content
  return content
    .map(({ type, text, refusal }) => {
      const said = text ?? (type === 'refusal' ? refusal : undefined)
      if (said !== undefined) return said
      throw new AppError(
        'unsupported_content',
        `Content of type ${JSON.stringify(type.slice(0, 100))} is not supported here; send text.`,
      )
    })
    .join('')
}
