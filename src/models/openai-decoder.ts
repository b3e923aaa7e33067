// Decodes the bytes of a chat-completions stream into parts. Pure: no socket, no clock. The
// parts do not depend on how the bytes are split into reads.
//
// An answer is complete when it has a `finish_reason`. After that, `[DONE]` or the end of the
// connection only ends the wait for the usage. A stream without a `finish_reason` was
// truncated and is always an error.

import { StringDecoder } from 'node:string_decoder'
import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'
import { defined } from '../kit/defined.ts'
import type { JsonValue, Usage } from '../journal/event.ts'
import type { Ids } from '../kit/ids.ts'
import { AppError } from '../errors/app-error.ts'
import { argumentsCharsMax, finishReasonWith, pushText, toToolCallParts, usageOf } from './answer-parts.ts'
import type { RawCall } from './answer-parts.ts'
import { type ContentTemplate, contentTemplate } from './content-template.ts'
import { toolCallsMax, tooManyToolCalls } from './model.ts'
import type { FinishReason, ModelPart, ModelRequest } from './model.ts'
import type { ReasoningFields } from './openai-request.ts'
import { incompleteError, malformedError, reportedError } from './provider-error.ts'
import type { ProviderIdentity } from './provider-error.ts'

/** The longest line of a stream, so that a provider that never ends a line cannot fill the memory. */
const lineCharsMax = 8 * 1024 * 1024
/** No template is made of a longer chunk. */
const templateCharsMax = 4096
/** The first chunk of an answer often names the role too. If later ones differ in more than their content, there is no use for a template. */
const templatesMax = 3
/** Longer reasoning is shown, but not sent back. */
const reasoningCharsMax = 8 * 1024 * 1024

type ToolCallDelta = {
  index?: number | null
  id?: string | null
  function?: { name?: string | null; arguments?: unknown } | null
  /** Gemini's compatible API puts the thought signature of a call here. */
  extra_content?: JsonValue
}

type Delta = {
  content?: unknown
  refusal?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  reasoning_details?: unknown
  tool_calls?: ToolCallDelta[] | null
}

type Choice = {
  index?: number | null
  delta?: Delta | null
  message?: Delta | null
  finish_reason?: string | null
}

type Chunk = {
  error?: unknown
  choices?: Choice[] | null
  usage?: Record<string, unknown> | null
}

export class OpenAiDecoder {
  /** True after the `finish` part; further input is ignored. */
  finished = false

  readonly #identity: ProviderIdentity
  readonly #request: ModelRequest
  readonly #ids: Ids
  /** Undefined until a read ends inside a character. */
  #text: StringDecoder | undefined
  readonly #parser: EventSourceParser
  readonly #calls: (RawCall & { index: number | undefined; extra?: JsonValue })[] = []
  /** Undefined if there are none: an empty list that waits for the next token gets old, and what it then holds outlives many collections of garbage. */
  #parts: ModelPart[] | undefined
  #reason: FinishReason | undefined
  #usage: Usage | undefined
  #sawContent = false
  #overflown = false
  #argumentChars = 0
  #reasoning: ReasoningFields = {}
  #reasoningChars = 0
  /** All that came was parsed, and the next character begins an event. */
  #isBetweenEvents = false
  #template: ContentTemplate | undefined
  #templates = 0

  constructor(identity: ProviderIdentity, request: ModelRequest, ids: Ids) {
    this.#identity = identity
    this.#request = request
    this.#ids = ids
    this.#parser = createParser({
      maxBufferSize: lineCharsMax,
      onEvent: (event) => this.#event(event.data),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#overflown = true
      },
    })
  }

  /** Throws if the stream is invalid; `take` still returns the parts before the error. */
  feed(bytes: Buffer, from = 0, to = bytes.length): void {
    if (this.finished) return
    const text = this.#decode(bytes, from, to)
    const read = this.#isBetweenEvents ? this.#readContents(text) : 0
    if (read === text.length) return
    this.#parser.feed(read === 0 ? text : text.slice(read))
    this.#isBetweenEvents = text.endsWith('\n\n')
    if (this.#overflown) throw malformedError(this.#identity, 'one line of its stream is longer than 8 MiB')
  }

  #decode(bytes: Buffer, from: number, to: number): string {
    // Without a beginning of a character before it, text that ends with an ASCII character is whole.
    if (this.#text === undefined && (bytes[to - 1] ?? 0) < 0x80) return bytes.toString('utf8', from, to)
    this.#text ??= new StringDecoder('utf8')
    return this.#text.write(bytes.subarray(from, to))
  }

  /** To be called when the connection is closed. `cause` is the error, if there was one. */
  end(cause?: unknown): void {
    if (this.finished) return
    try {
      // Some servers omit the blank line after the last frame.
      this.#parser.feed(`${this.#text?.end() ?? ''}\n\n`)
    } catch (error) {
      // A frame that was truncated after the finish reason can only have held the usage.
      if (this.#reason === undefined) throw error
    }
    if (this.finished) return
    if (this.#reason === undefined) {
      throw incompleteError(this.#identity, 'the connection closed before the end of the answer', cause)
    }
    this.#finish(this.#reason)
  }

  /** Decodes the answer of a server that does not stream: one JSON body. */
  whole(body: string): void {
    const chunk = this.#parse(body)
    const choice = Array.isArray(chunk.choices) ? firstChoice(chunk.choices) : undefined
    if (chunk.error === undefined && choice?.message === undefined && choice?.delta === undefined) {
      throw malformedError(this.#identity, 'it is JSON without choices')
    }
    this.#understand(chunk)
    if (!this.finished) this.#finish(this.#reason ?? 'stop')
  }

  /** The tokens that the provider reported so far. */
  get usage(): Usage | undefined {
    return this.#usage
  }

  /** The parts since the last call. */
  take(): ModelPart[] {
    const parts = this.#parts ?? []
    this.#parts = undefined
    return parts
  }

  /**
   * Reads events up to the first one that does not fit the template, and returns the index of that one. The parser would need more time for
   * a token than all other code before the journal.
   */
  #readContents(text: string): number {
    const template = this.#template
    if (template === undefined) return 0
    let at = 0
    while (at < text.length) {
      const content = template.contentAt(text, at)
      if (content === undefined) break
      this.#addText('text', content)
      at = template.end
    }
    return at
  }

  #event(data: string): void {
    if (this.finished) return
    if (data === '[DONE]') {
      if (this.#reason === undefined && !this.#sawContent) {
        throw incompleteError(this.#identity, 'the stream ended without any content')
      }
      this.#finish(this.#reason ?? 'stop')
      return
    }
    const content = this.#template?.contentOf(data)
    if (content === undefined) {
      const chunk = this.#parse(data)
      this.#understand(chunk)
      this.#learnTemplate(data, chunk)
    } else this.#addText('text', content)
  }

  #learnTemplate(data: string, chunk: Chunk): void {
    if (this.#templates === templatesMax || data.length > templateCharsMax) return
    const content = onlyContent(chunk)
    if (content === undefined) return
    this.#templates += 1
    this.#template = contentTemplate(data, content, (other) => onlyContent(other as Chunk))
  }

  #parse(data: string): Chunk {
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch (cause) {
      throw incompleteError(this.#identity, 'a part of it is not valid JSON', cause)
    }
    if (chunk === null || typeof chunk !== 'object' || Array.isArray(chunk)) {
      throw incompleteError(this.#identity, 'a part of it is not a JSON object')
    }
    return chunk
  }

  /** Catches type errors, because a provider may send other types than those declared above. */
  #understand(chunk: Chunk): void {
    try {
      this.#accept(chunk)
    } catch (error) {
      if (error instanceof AppError) throw error
      throw malformedError(this.#identity, 'it does not have the shape of a chat completion')
    }
  }

  #accept(chunk: Chunk): void {
    if (chunk.usage) this.#usage = readUsage(chunk.usage) ?? this.#usage
    if (chunk.error !== undefined && chunk.error !== null) throw reportedError(this.#identity, chunk.error)
    if (chunk.choices === undefined || chunk.choices === null) return
    if (!Array.isArray(chunk.choices)) throw new TypeError('choices is not a list')
    const choice = firstChoice(chunk.choices)
    if (choice === undefined) return
    const delta = choice.delta ?? choice.message
    if (delta) this.#delta(delta)
    if (choice.finish_reason) {
      if (choice.finish_reason === 'error') throw reportedError(this.#identity, 'its finish reason is "error".')
      this.#reason = toFinishReason(choice.finish_reason)
    }
  }

  #delta(delta: Delta): void {
    const reasoning = delta.reasoning_content ?? delta.reasoning
    if (typeof reasoning === 'string') this.#addText('reasoning', reasoning)
    this.#keepReasoning(delta)
    if (typeof delta.content === 'string') this.#addText('text', delta.content)
    else if (Array.isArray(delta.content)) {
      for (const piece of delta.content as { text?: unknown }[]) {
        if (typeof piece?.text === 'string') this.#addText('text', piece.text)
      }
    }
    if (typeof delta.refusal === 'string') this.#addText('text', delta.refusal)
    if (delta.tool_calls) for (const fragment of delta.tool_calls) this.#toolCall(fragment)
  }

  #addText(type: 'text' | 'reasoning', text: string): void {
    if (text === '') return
    this.#sawContent = true
    pushText((this.#parts ??= []), type, text)
  }

  /** Some servers need the reasoning back with the tool calls that it led to, in the field in which they sent it. */
  #keepReasoning({ reasoning_content, reasoning, reasoning_details }: Delta): void {
    const kept = this.#reasoning
    for (const [field, text] of [
      ['reasoning_content', reasoning_content],
      ['reasoning', reasoning],
    ] as const) {
      if (typeof text !== 'string' || text === '') continue
      kept[field] = (kept[field] ?? '') + text
      this.#reasoningChars += text.length
    }
    if (!Array.isArray(reasoning_details)) return
    for (const detail of reasoning_details as JsonValue[]) {
      this.#reasoningChars += JSON.stringify(detail).length
      if (this.#reasoningChars <= reasoningCharsMax) (kept.reasoning_details ??= []).push(detail)
    }
  }

  #toolCall(fragment: ToolCallDelta): void {
    this.#sawContent = true
    const name = fragment.function?.name || undefined
    const id = fragment.id || undefined
    const index = fragment.index ?? undefined
    let call = this.#calls.findLast((known) => index === undefined || known.index === index)
    // Some servers send index 0, or none, for every call, so a new id together with a name begins a new call. Neither
    // alone does, because other servers repeat the name, or change the id, in every fragment of one call.
    const another = call !== undefined && name !== undefined && id !== undefined && call.id !== '' && id !== call.id
    if (call === undefined || another) {
      // Checked for each new call and not only at the end, because finding the call of a fragment takes linear time.
      if (this.#calls.length === toolCallsMax) throw tooManyToolCalls()
      call = { index, id: id ?? '', name: name ?? '', rawInput: '' }
      this.#calls.push(call)
    } else {
      if (call.id === '' && id !== undefined) call.id = id
      if (call.name === '' && name !== undefined) call.name = name
    }
    if (fragment.extra_content !== undefined && fragment.extra_content !== null) {
      call.extra = fragment.extra_content
      this.#reasoningChars += JSON.stringify(call.extra).length
    }
    const given = fragment.function?.arguments
    // Some servers send the arguments as an object instead of a string.
    const text = given !== null && typeof given === 'object' ? JSON.stringify(given) : given
    if (typeof text !== 'string') return
    call.rawInput += text
    this.#argumentChars += text.length
    // Unlike text, arguments are buffered here until the answer is complete, so they are limited.
    if (this.#argumentChars > argumentsCharsMax) {
      throw malformedError(this.#identity, 'the arguments of its tool calls are longer than 8 MiB')
    }
  }

  /** Undefined if there is nothing to send back: reasoning goes only with tool calls. */
  #state(): JsonValue | undefined {
    const isKept = this.#calls.length > 0 && this.#reasoningChars > 0 && this.#reasoningChars <= reasoningCharsMax
    if (!isKept) return undefined
    const extras = this.#calls.map(({ extra = null }) => extra)
    return extras.some((extra) => extra !== null) ? { ...this.#reasoning, extra_contents: extras } : this.#reasoning
  }

  #finish(reason: FinishReason): void {
    if (this.#calls.some((call) => call.name === '')) {
      throw malformedError(this.#identity, 'it asks for a tool without naming it')
    }
    this.finished = true
    const parts = (this.#parts ??= [])
    for (const part of toToolCallParts(this.#calls, reason, this.#request, this.#ids)) parts.push(part)
    parts.push({
      type: 'finish',
      reason: finishReasonWith(this.#calls.length, reason),
      ...defined({ usage: this.#usage, state: this.#state() }),
    })
  }
}

/** With an option such as `n` a server sends several answers, mixed. The first one is the answer. Some servers do not number them. */
function firstChoice(choices: readonly Choice[]): Choice | undefined {
  return choices.find(({ index }) => index === undefined || index === null || index === 0)
}

/** The content of a chunk that has nothing else to tell. */
function onlyContent({ usage, error, choices }: Chunk): string | undefined {
  if (usage || (error !== undefined && error !== null) || !Array.isArray(choices) || choices.length !== 1)
    return undefined
  const choice = firstChoice(choices)
  const { content, ...rest } = choice?.delta ?? {}
  if (choice?.finish_reason || typeof content !== 'string') return undefined
  const { reasoning_content, reasoning, reasoning_details, refusal, tool_calls } = rest
  return [reasoning_content, reasoning, reasoning_details, refusal, tool_calls].every((field) => field == null)
    ? content
    : undefined
}

function toFinishReason(raw: string): FinishReason {
  switch (raw) {
    case 'stop':
      return 'stop'
    case 'length':
      return 'length'
    case 'tool_calls':
    case 'function_call':
      return 'tool-calls'
    case 'content_filter':
      return 'content-filter'
    default:
      return 'other'
  }
}

function readUsage(usage: Record<string, unknown>): Usage | undefined {
  const prompt = usage['prompt_tokens_details'] as { cached_tokens?: unknown; cache_write_tokens?: unknown } | null
  const completion = usage['completion_tokens_details'] as { reasoning_tokens?: unknown } | null | undefined
  return usageOf({
    input: usage['prompt_tokens'],
    // DeepSeek reports the hits of its cache in a field of its own.
    cached: prompt?.cached_tokens ?? usage['prompt_cache_hit_tokens'],
    cacheWrite: prompt?.cache_write_tokens,
    output: usage['completion_tokens'],
    reasoning: completion?.reasoning_tokens,
  })
}
