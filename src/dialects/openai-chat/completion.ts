// The chunks of one completion → the object that a request without `stream` gets. It is put
// together from the same frames, so that both ways give the same answer.

import type { Frame } from '../dialect.ts'
import type { OpenAiError } from './openai-error.ts'

type Chunk = {
  id: string
  created: number
  model: string
  choices: {
    delta: {
      content?: string
      reasoning_content?: string
      tool_calls?: Record<string, unknown>[]
      annotations?: unknown[]
    }
    finish_reason: string | null
  }[]
  usage?: Record<string, unknown>
  polylog?: Record<string, unknown>
  error?: OpenAiError
}

export type ChatCompletion = Record<string, unknown> & { id: string }

/** Takes the frames of one completion, one by one. */
export class CompletionBuilder {
  private first: Chunk | undefined
  private content = ''
  private reasoning = ''
  private readonly toolCalls: Record<string, unknown>[] = []
  private readonly annotations: unknown[] = []
  private readonly events: Record<string, unknown>[] = []
  private finishReason: string | undefined
  private usage: Record<string, unknown> | undefined
  private error: OpenAiError | undefined

  add({ data }: Frame): void {
    if (typeof data === 'string') return
    const chunk = data as Chunk
    if (chunk.error !== undefined) {
      this.error = chunk.error
      return
    }
    this.first ??= chunk
    this.usage = chunk.usage ?? this.usage
    if (chunk.polylog !== undefined) this.events.push(chunk.polylog)
    for (const { delta, finish_reason } of chunk.choices) {
      this.content += delta.content ?? ''
      this.reasoning += delta.reasoning_content ?? ''
      for (const { index: _index, ...call } of delta.tool_calls ?? []) this.toolCalls.push(call)
      this.annotations.push(...(delta.annotations ?? []))
      this.finishReason = finish_reason ?? this.finishReason
    }
  }

  /** Undefined if the completion has no end yet. */
  result(): { completion: ChatCompletion } | { error: OpenAiError } | undefined {
    const { first, error, content, reasoning, toolCalls, annotations, events, usage, finishReason } = this
    if (error !== undefined) return { error }
    if (first === undefined || finishReason === undefined) return undefined
    const message = {
      role: 'assistant',
      content: content === '' && toolCalls.length > 0 ? null : content,
      refusal: null,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
      ...(annotations.length === 0 ? {} : { annotations }),
    }
    return {
      completion: {
        id: first.id,
        object: 'chat.completion',
        created: first.created,
        model: first.model,
        choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
        ...(usage === undefined ? {} : { usage }),
        ...(events.length === 0 ? {} : { polylog: events }),
      },
    }
  }
}
