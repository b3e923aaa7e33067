// The chunks of one completion → the object that a request without `stream` gets. It is put
// together from the same frames, so that both ways give the same answer. Pure.

import type { Frame } from '../dialect.ts'
import type { OpenAiError } from './openai-error.ts'

type Delta = {
  content?: string
  reasoning_content?: string
  tool_calls?: Record<string, unknown>[]
}

type Chunk = {
  id: string
  created: number
  model: string
  choices: { delta: Delta; finish_reason: string | null }[]
  usage?: Record<string, unknown>
  polylog?: Record<string, unknown>
  error?: OpenAiError
}

export type ChatCompletion = Record<string, unknown> & { id: string }

/** Throws nothing: if the run failed, its error is the result. Undefined if the frames have no end. */
export function completionOf(
  frames: readonly Frame[],
): { completion: ChatCompletion } | { error: OpenAiError } | undefined {
  const chunks = frames.flatMap(({ data }) => (typeof data === 'string' ? [] : [data as Chunk]))
  const error = chunks.find((chunk) => chunk.error !== undefined)?.error
  if (error !== undefined) return { error }
  const choices = chunks.flatMap((chunk) => chunk.choices)
  const finish = choices.findLast(({ finish_reason }) => finish_reason !== null)?.finish_reason
  const [first] = chunks
  if (finish == null || first === undefined) return undefined
  const { id, created, model } = first
  const text = (field: 'content' | 'reasoning_content') => choices.map(({ delta }) => delta[field] ?? '').join('')
  const toolCalls = choices.flatMap(({ delta }) => delta.tool_calls ?? []).map(({ index: _index, ...call }) => call)
  const events = chunks.flatMap(({ polylog }) => polylog ?? [])
  const content = text('content')
  const reasoning = text('reasoning_content')
  const message = {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  }
  const usage = chunks.findLast((chunk) => chunk.usage !== undefined)?.usage
  return {
    completion: {
      id,
      object: 'chat.completion',
      created,
      model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
      ...(usage === undefined ? {} : { usage }),
      ...(events.length === 0 ? {} : { polylog: events }),
    },
  }
}
