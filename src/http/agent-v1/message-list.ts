// The `messages` of a chat request, in the OpenAI format, in our words: what is asked, what stood before it, and the
// instructions for this run. Calls and results are history and nothing more: nothing in the list is executed, and
// nothing in it counts as somebody's decision.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'

const contentPart = z.object({ type: z.string(), text: z.string().optional() }).loose()

const called = z.object({ name: z.string().min(1).max(200), arguments: z.string().nullish() }).loose()

const chatMessage = z
  .object({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: z.union([z.string(), z.array(contentPart).max(1000), z.null()]).optional(),
    tool_calls: z
      .array(z.object({ id: z.string().min(1).max(200), function: called }).loose())
      .max(128)
      .nullish()
      .describe('Of an assistant: the calls that the tool messages behind it answer.'),
    tool_call_id: z.string().min(1).max(200).nullish().describe('Of a tool message: the call that it answers.'),
  })
  .loose()

export const messageList = z
  .array(chatMessage)
  .max(10_000)
  .nullish()
  .describe(
    'Chat history in the OpenAI format. The last user message is the input; a list that ends in tool results is continued from them. Entries with role system are instructions for this run. If the conversation is stored already, its history wins.',
  )

type ChatMessage = z.infer<typeof chatMessage>

/** All system entries of a list together. */
const instructionsCharsMax = 32 * 1024

export type MessageListParts = Pick<StartRequest, 'input' | 'earlier' | 'instructions' | 'continues'>

/** `messages` is not empty. */
export function readMessageList(messages: readonly ChatMessage[]): MessageListParts {
  const instructions = instructionsOf(messages)
  const talk = messages.filter(({ role }) => !isInstruction(role))
  const common = instructions === '' ? {} : { instructions }
  if (talk.at(-1)?.role === 'tool') return { ...common, ...continuedFrom(talk) }

  const last = talk.findLastIndex(({ role }) => role === 'user')
  if (last === -1)
    throw new AppError(
      'messages_or_prompt_required',
      'messages holds no message with role "user"; add one, or send prompt.',
    )
  const input = textOf(talk[last]?.content)
  if (input.trim() === '')
    throw new AppError('messages_or_prompt_required', 'The last user message is empty; send some text.')
  return { ...common, input, earlier: earlierOf(talk.slice(0, last)) }
}

function isInstruction(role: ChatMessage['role']): boolean {
  return role === 'system' || role === 'developer'
}

function instructionsOf(messages: readonly ChatMessage[]): string {
  const text = messages
    .filter(({ role }) => isInstruction(role))
    .map(({ content }) => textOf(content).trim())
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

/** Every call of the last assistant message must be answered: the model is asked to go on from the results. */
function continuedFrom(talk: readonly ChatMessage[]): MessageListParts {
  const earlier = earlierOf(talk)
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

function earlierOf(talk: readonly ChatMessage[]): EarlierMessage[] {
  const entries: EarlierMessage[] = []
  /** The calls of the last assistant message that have no result yet. */
  let open = new Map<string, string>()
  for (const message of talk) {
    const content = textOf(message.content)
    switch (message.role) {
      case 'user':
        if (content !== '') entries.push({ role: 'user', content })
        break
      case 'assistant': {
        const toolCalls = (message.tool_calls ?? []).map((call) => ({
          callId: call.id,
          name: call.function.name,
          input: argumentsOf(call.id, call.function.arguments),
        }))
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
        // `function` is the form that tool messages replaced; it names no call, so there is nothing to pair it with.
        break
    }
  }
  return entries
}

function argumentsOf(callId: string, text: string | null | undefined): JsonValue {
  if (text == null || text.trim() === '') return {}
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    throw invalid(`the arguments of the call ${JSON.stringify(callId)} are not JSON`)
  }
}

function invalid(what: string): AppError {
  return new AppError('messages_invalid', `messages: ${what}.`)
}

function textOf(content: ChatMessage['content']): string {
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
