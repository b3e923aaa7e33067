// What a provider needs back with a message of the assistant: signed or encrypted reasoning,
// signatures of tool calls, ids of items. It is collected from the metadata of an answer, kept
// in the journal, and put back at the same place in the next request.
//
// Only the structure is kept here. The text and the tool calls come from the journal, because
// call ids may have been replaced and arguments edited since.

import type { LanguageModelV4Message, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { z } from 'zod'
import { json, type JsonValue } from '../journal/json-value.ts'
import { grown } from '../kit/growing-text.ts'
import type { ModelMessage } from './model.ts'
import { malformedError, type ProviderIdentity } from './provider-error.ts'

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type AssistantMessage = Extract<ModelMessage, { role: 'assistant' }>

/** By the provider's name, as the AI SDK's adapters expect it. */
const options = z.record(z.string(), z.record(z.string(), json))

const stateParts = z.array(
  z.union([
    z.object({ type: z.literal('reasoning'), text: z.string(), options: options.optional() }),
    z.object({ type: z.literal('text'), chars: z.number().int().nonnegative(), options: options.optional() }),
    z.object({ type: z.literal('call'), options: options.optional() }),
    // What the provider ran itself. It is not in the journal in this form, so it is kept whole.
    z.object({
      type: z.literal('provider-call'),
      callId: z.string(),
      name: z.string(),
      input: json,
      options: options.optional(),
    }),
    z.object({
      type: z.literal('provider-result'),
      callId: z.string(),
      name: z.string(),
      output: json,
      isError: z.boolean(),
      options: options.optional(),
    }),
  ]),
)

type StatePart = z.infer<typeof stateParts>[number]
type BlockType = 'text' | 'reasoning' | 'call'
type ProviderCall = { callId: string; name: string; input: JsonValue }
type ProviderResult = { callId: string; name: string; output: JsonValue; isError: boolean }

/** The limit for the state of one answer, far above any real one. */
const stateCharsMax = 8 * 1024 * 1024
/** Each part is at least a block of the provider's answer; real answers have a handful. */
const statePartsMax = 2048

export class ProviderStateCollector {
  readonly #identity: ProviderIdentity
  readonly #parts: StatePart[] = []
  /** Blocks may be interleaved, for example if the end of one comes after the start of the next. */
  readonly #byId = new Map<string, StatePart>()
  #current: StatePart | undefined
  #currentId = ''
  #signed = false
  #chars = 0

  constructor(identity: ProviderIdentity) {
    this.#identity = identity
  }

  /** Adds a start, a piece or an end of the block `id`. Runs for every token. */
  add(type: BlockType, id: string, text: string, metadata: SharedV4ProviderMetadata | undefined): void {
    let part = this.#current
    if (part === undefined || this.#currentId !== id || part.type !== type) part = this.#begin(type, id)
    if (part.type === 'text') part.chars += text.length
    else if (part.type === 'reasoning') part.text = grown(part.text, text)
    if (metadata !== undefined) this.#merge(part, metadata)
  }

  /** A tool that the provider runs itself. */
  addCall(call: ProviderCall, metadata: SharedV4ProviderMetadata | undefined): void {
    this.#addWhole({ type: 'provider-call', ...call }, metadata)
  }

  addResult(result: ProviderResult, metadata: SharedV4ProviderMetadata | undefined): void {
    this.#addWhole({ type: 'provider-result', ...result }, metadata)
  }

  #addWhole(part: StatePart, metadata: SharedV4ProviderMetadata | undefined): void {
    this.#push(part)
    this.#current = undefined
    this.#signed = true
    this.#count(JSON.stringify(part).length)
    if (metadata !== undefined) this.#merge(part, metadata)
  }

  #push(part: StatePart): void {
    if (this.#parts.length === statePartsMax) throw malformedError(this.#identity, 'it has too many parts')
    this.#parts.push(part)
  }

  #count(chars: number): void {
    this.#chars += chars
    if (this.#chars > stateCharsMax) throw malformedError(this.#identity, 'its metadata is longer than 8 MiB')
  }

  /** Undefined if the provider needs nothing back. */
  toJson(): JsonValue | undefined {
    if (!this.#signed) return undefined
    // Reasoning without metadata cannot be verified by any provider, so it is not sent back.
    return this.#parts.filter((part) => part.type !== 'reasoning' || part.options !== undefined) as JsonValue
  }

  #begin(type: BlockType, id: string): StatePart {
    const known = this.#byId.get(`${type} ${id}`)
    const part = known ?? newPart(type)
    if (known === undefined) {
      this.#push(part)
      this.#byId.set(`${type} ${id}`, part)
    }
    this.#current = part
    this.#currentId = id
    return part
  }

  #merge(part: StatePart, metadata: SharedV4ProviderMetadata): void {
    for (const [provider, values] of Object.entries(metadata)) {
      for (const [name, value] of Object.entries(values)) {
        if (value === undefined || value === null) continue
        part.options ??= {}
        part.options[provider] ??= {}
        if (part.options[provider][name] === value) continue
        this.#count(typeof value === 'string' ? value.length : JSON.stringify(value).length)
        part.options[provider][name] = value as JsonValue
        this.#signed = true
      }
    }
  }
}

function newPart(type: BlockType): StatePart {
  if (type === 'text') return { type, chars: 0 }
  return type === 'reasoning' ? { type, text: '' } : { type }
}

/** The content of a message for the AI SDK, with the provider's state at its places. */
export function assistantContent(message: AssistantMessage): AssistantContent {
  const calls = (message.toolCalls ?? []).map((call) => ({
    type: 'tool-call' as const,
    toolCallId: call.callId,
    toolName: call.name,
    input: call.input,
  }))
  // Anthropic refuses texts of white space.
  const plain = message.content.trim() === '' ? [] : [{ type: 'text' as const, text: message.content }]
  if (message.providerState === undefined) return [...plain, ...calls]
  const state = stateParts.safeParse(message.providerState)
  if (!state.success) return [...plain, ...calls]

  const chars = state.data.reduce((sum, part) => sum + (part.type === 'text' ? part.chars : 0), 0)
  // If the text is not that of the answer any more, its blocks are unknown; then it is one block after the reasoning.
  const known = chars === message.content.length
  const content: AssistantContent = []
  let at = 0
  let textPlaced = known
  for (const part of state.data) {
    const providerOptions = part.options === undefined ? {} : { providerOptions: part.options }
    if (part.type === 'reasoning') content.push({ type: 'reasoning', text: part.text, ...providerOptions })
    else if (part.type === 'text') {
      if (!known) {
        if (!textPlaced) content.push(...plain)
        textPlaced = true
        continue
      }
      const text = message.content.slice(at, at + part.chars)
      at += part.chars
      // A signature may come with an empty text.
      if (text.trim() !== '' || part.options !== undefined) content.push({ type: 'text', text, ...providerOptions })
    } else if (part.type === 'provider-call') {
      const call = { toolCallId: part.callId, toolName: part.name, input: part.input, providerExecuted: true }
      content.push({ type: 'tool-call', ...call, ...providerOptions })
    } else if (part.type === 'provider-result') {
      const output = { type: part.isError ? ('error-json' as const) : ('json' as const), value: part.output }
      content.push({ type: 'tool-result', toolCallId: part.callId, toolName: part.name, output, ...providerOptions })
    } else {
      if (!textPlaced) content.push(...plain)
      textPlaced = true
      const call = calls.shift()
      if (call !== undefined) content.push({ ...call, ...providerOptions })
    }
  }
  if (!textPlaced) content.push(...plain)
  return [...content, ...calls]
}
