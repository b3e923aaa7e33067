// The `input` of a request of the Responses API: a text, or a list of items. It is brought to the form of
// chat messages, which every other part of the server understands; answers to calls are kept apart.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { CallAnswer } from './answered-calls.ts'

/** Items of a response have null in fields that do not apply, and clients send them back as they are. */
export const inputItem = z
  .object({
    type: z.string().max(100).nullish(),
    role: z.enum(['user', 'assistant', 'system', 'developer']).nullish(),
    content: z.union([z.string(), z.array(z.object({ type: z.string() }).loose()).max(1000)]).nullish(),
    call_id: z.string().min(1).max(200).nullish(),
    id: z.string().max(200).nullish(),
    name: z.string().min(1).max(200).nullish(),
    arguments: z.string().nullish(),
    output: z
      .union([z.string(), z.array(z.object({ type: z.string(), text: z.string().optional() }).loose()).max(1000)])
      .nullish(),
    approval_request_id: z.string().min(1).max(200).nullish(),
    approve: z.boolean().nullish(),
    reason: z.string().max(2000).nullish(),
  })
  .loose()

export const responseInput = z.union([z.string(), z.array(inputItem).max(10_000)])

export type InputItem = z.infer<typeof inputItem>
export type ResponseInput = z.infer<typeof responseInput>

/** A message as `readMessageList` takes it. */
export type InputMessage = {
  role: 'user' | 'assistant' | 'system' | 'developer' | 'tool'
  content: string | { [name: string]: unknown; type: string }[]
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

export type ReadInput = {
  messages: InputMessage[]
  /** The answers at the end of the input, after the last message of the user. */
  answers: CallAnswer[]
}

export function readInput(input: ResponseInput): ReadInput {
  if (typeof input === 'string') return { messages: [{ role: 'user', content: input }], answers: [] }
  const messages: InputMessage[] = []
  let answers: CallAnswer[] = []
  for (const [index, item] of input.entries()) {
    const type = item.type ?? 'message'
    switch (type) {
      case 'message':
        if (item.role == null) throw invalid(index, 'a message needs a role')
        if (item.role !== 'assistant') answers = []
        messages.push({ role: item.role, content: item.content ?? '' })
        break
      case 'function_call':
        addCall(messages, index, item)
        break
      case 'function_call_output': {
        if (item.call_id == null) throw invalid(index, 'a function_call_output needs a call_id')
        const output = outputText(item)
        messages.push({ role: 'tool', content: output, tool_call_id: item.call_id })
        answers.push({ id: item.call_id, output })
        break
      }
      case 'mcp_approval_response': {
        const { approval_request_id: id, approve, reason } = item
        if (id == null || approve == null)
          throw invalid(index, 'an mcp_approval_response needs approval_request_id and approve')
        answers.push({ id, output: reason ?? '', approved: approve })
        break
      }
      case 'mcp_call': {
        const callId = item.id ?? `mcp_${index}`
        addCall(messages, index, { ...item, call_id: callId })
        const failure = typeof item['error'] === 'string' ? item['error'] : ''
        messages.push({ role: 'tool', content: outputText(item) || failure, tool_call_id: callId })
        break
      }
      // What a client sends back of earlier answers, and what no model needs again.
      case 'reasoning':
      case 'mcp_approval_request':
      case 'mcp_list_tools':
        break
      default:
        throw new AppError(
          'unsupported_content',
          `input[${index}]: items of type ${JSON.stringify(type)} are not supported; send messages, function_call and function_call_output.`,
          { details: { param: `input[${index}]` } },
        )
    }
  }
  return { messages, answers }
}

/** The calls of one answer belong to one message, because their results follow together. */
function addCall(messages: InputMessage[], index: number, item: InputItem): void {
  const { call_id: id, name } = item
  if (id == null || name == null) throw invalid(index, 'a call needs a call_id and a name')
  const call = { id, function: { name, arguments: item.arguments ?? '' } }
  const last = messages.at(-1)
  if (last?.role === 'assistant' && last.tool_calls !== undefined) last.tool_calls.push(call)
  else messages.push({ role: 'assistant', content: '', tool_calls: [call] })
}

function outputText({ output }: InputItem): string {
  if (output == null || typeof output === 'string') return output ?? ''
  return output
    .map(({ type, text }) => {
      if (text !== undefined) return text
      throw new AppError('unsupported_content', `Results of type ${JSON.stringify(type)} are not supported; send text.`)
    })
    .join('')
}

function invalid(index: number, what: string): AppError {
  return new AppError('messages_invalid', `input[${index}]: ${what}.`, { details: { param: `input[${index}]` } })
}
