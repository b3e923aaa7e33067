// Reads one answer of a model of the AI SDK: its stream parts become our parts. An answer may
// come in several streams, if the provider pauses and has to be asked to go on.
//
// The SDK's adapters report a truncated stream as a kind of finish. We accept only a finish
// reason that the provider itself sent; anything else is `model_stream_incomplete`.

import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { JsonValue, Usage } from '../journal/event.ts'
import { sumOfReports } from '../journal/usage.ts'
import { defined } from '../kit/defined.ts'
import { grown } from '../kit/growing-text.ts'
import type { Ids } from '../kit/ids.ts'
import {
  argumentsCharsMax,
  finishReasonWith,
  parseCallArguments,
  pushText,
  type RawCall,
  toToolCallParts,
  usageOf,
} from './answer-parts.ts'
import { toolCallsMax, tooManyToolCalls } from './model.ts'
import type { FinishReason, ModelMessage, ModelPart, ModelRequest } from './model.ts'
import { incompleteError, malformedError, type ProviderIdentity, reportedError } from './provider-error.ts'
import { ProviderStateCollector } from './provider-state.ts'
import { readableResult, shownToolName } from './provider-tools.ts'

type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>

/** A provider that pauses more often than this is not asked again; the answer so far counts. */
const pausesMax = 16

export class AiSdkAnswer {
  private readonly request: ModelRequest
  private readonly identity: ProviderIdentity
  private readonly ids: Ids
  private readonly calls: RawCall[] = []
  private readonly state: ProviderStateCollector
  private argumentChars = 0
  /** The calls whose arguments have begun to arrive. */
  private readonly begunArguments = new Set<string>()
  private text = ''
  private pauses = 0
  /** The tokens of the streams that have ended. */
  private usage: Usage | undefined
  /** The tokens that the open stream has reported. */
  private usageSoFar: Usage | undefined
  private readonly ignored = new Set<string>()
  /** The message with which the provider is asked to go on; undefined if the answer is complete. */
  private pausedMessage: ModelMessage | undefined

  constructor(request: ModelRequest, identity: ProviderIdentity, ids: Ids) {
    this.request = request
    this.identity = identity
    this.ids = ids
    this.state = new ProviderStateCollector(identity)
  }

  /** Names of settings or options that the adapter does not send. */
  ignores(names: readonly string[]): void {
    for (const name of names) this.ignored.add(name)
  }

  /** The tokens that the provider reported so far. */
  get reported(): Usage | undefined {
    return sumOfReports(this.usage, this.usageSoFar)
  }

  /** Notes the tokens that a part of the stream reports. */
  report(part: LanguageModelV4StreamPart): void {
    if (part.type === 'finish') this.usageSoFar = usageIn(part.usage) ?? this.usageSoFar
    // Of the adapters, only this one tells what the provider reports at the start.
    else if (part.type === 'custom' && part.kind === 'anthropic.message_start')
      this.usageSoFar = usageAtStart(part.providerMetadata?.['anthropic']?.['usage'])
  }

  /** The request for the next stream of a paused answer. */
  continuation(): ModelRequest | undefined {
    if (this.pausedMessage === undefined) return undefined
    const messages = [...this.request.messages, this.pausedMessage]
    this.pausedMessage = undefined
    return { ...this.request, messages }
  }

  /** Adds the parts of one stream part. Returns true after the last one of a stream. */
  take(part: LanguageModelV4StreamPart, parts: ModelPart[]): boolean {
    switch (part.type) {
      case 'text-delta':
        pushText(parts, 'text', part.delta)
        this.text = grown(this.text, part.delta)
        this.state.add('text', this.blockId(part.id), part.delta, part.providerMetadata)
        return false
      case 'reasoning-delta':
        pushText(parts, 'reasoning', part.delta)
        this.state.add('reasoning', this.blockId(part.id), part.delta, part.providerMetadata)
        return false
      case 'text-start':
      case 'text-end':
        this.state.add('text', this.blockId(part.id), '', part.providerMetadata)
        return false
      case 'reasoning-start':
      case 'reasoning-end':
        this.state.add('reasoning', this.blockId(part.id), '', part.providerMetadata)
        return false
      case 'tool-input-delta':
        // The adapter buffers the arguments until the call is complete, so we limit them here.
        this.argumentChars += part.delta.length
        if (part.delta !== '') this.begunArguments.add(part.id)
        if (this.argumentChars > argumentsCharsMax) {
          throw malformedError(this.identity, 'the arguments of its tool calls are longer than 8 MiB')
        }
        return false
      case 'tool-call':
        this.takeCall(part, parts)
        return false
      case 'tool-result':
        if (part.preliminary !== true) this.takeResult(part, parts)
        return false
      case 'source':
        parts.push(
          part.sourceType === 'url'
            ? { type: 'source', url: part.url, ...defined({ title: part.title }) }
            : { type: 'source', title: part.title, mediaType: part.mediaType },
        )
        return false
      case 'stream-start':
        for (const warning of part.warnings) if (warning.type === 'unsupported') this.ignored.add(warning.feature)
        return false
      case 'custom':
        this.report(part)
        return false
      case 'finish':
        this.finish(part, parts)
        return true
      default:
        // Starts, metadata and files are ignored: we have no part for them.
        return false
    }
  }

  private takeCall(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>, parts: ModelPart[]): void {
    if (part.providerExecuted === true) {
      const input = parseCallArguments(part.input, 'stop') ?? part.input
      this.state.addCall({ callId: part.toolCallId, name: part.toolName, input }, part.providerMetadata)
      parts.push({ type: 'provider-call', callId: part.toolCallId, name: shownToolName(part.toolName), input })
      return
    }
    if (this.calls.length === toolCallsMax) throw tooManyToolCalls()
    this.calls.push({ id: part.toolCallId, name: part.toolName, rawInput: part.input })
    this.state.add('call', part.toolCallId, '', part.providerMetadata)
  }

  private takeResult(part: Extract<LanguageModelV4StreamPart, { type: 'tool-result' }>, parts: ModelPart[]): void {
    const isError = part.isError === true
    const result = { callId: part.toolCallId, name: part.toolName, isError }
    // The adapters build results from JSON of the provider, so they are JSON values.
    this.state.addResult({ ...result, output: part.result as JsonValue }, part.providerMetadata)
    const output = readableResult(part.result) as JsonValue
    parts.push({ type: 'provider-result', callId: part.toolCallId, output, isError })
  }

  private finish(part: FinishPart, parts: ModelPart[]): void {
    this.report(part)
    this.usage = this.reported
    this.usageSoFar = undefined
    const reason = finishOf(part.finishReason, this.identity)
    const state = this.state.toJson()
    if (part.finishReason.raw === 'pause_turn' && this.calls.length === 0 && this.pauses < pausesMax) {
      this.pauses += 1
      this.pausedMessage = { role: 'assistant', content: this.text, ...defined({ providerState: state }) }
      return
    }
    const calls = reason === 'length' ? this.calls.map((call) => this.withoutDefault(call)) : this.calls
    parts.push(...toToolCallParts(calls, reason, this.request, this.ids), {
      type: 'finish',
      reason: finishReasonWith(this.calls.length, reason),
      ...defined({ usage: this.usage, state, ignored: this.ignored.size === 0 ? undefined : [...this.ignored] }),
    })
  }

  /** Adapters write `{}` for arguments that never came. At the token limit they may have been cut off before their first character. */
  private withoutDefault(call: RawCall): RawCall {
    return call.rawInput === '{}' && !this.begunArguments.has(call.id) ? { ...call, rawInput: '' } : call
  }

  /** Each stream of a paused answer begins its ids again. */
  private blockId(id: string): string {
    return this.pauses === 0 ? id : `${this.pauses} ${id}`
  }
}

function usageIn({ inputTokens, outputTokens }: LanguageModelV4Usage): Usage | undefined {
  return usageOf({
    input: inputTokens.total,
    cached: inputTokens.cacheRead,
    cacheWrite: inputTokens.cacheWrite,
    output: outputTokens.total,
    reasoning: outputTokens.reasoning,
  })
}

/** What Anthropic reports with the start of an answer. Its `input_tokens` are without those of the cache. */
function usageAtStart(reported: unknown): Usage | undefined {
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = Object(reported) as {
    [name: string]: unknown
  }
  const cached = Number(cache_read_input_tokens ?? 0)
  const cacheWrite = Number(cache_creation_input_tokens ?? 0)
  const input = Number(input_tokens) + cached + cacheWrite
  return usageOf({ input, cached, cacheWrite, output: output_tokens, reasoning: undefined })
}

function finishOf(finish: LanguageModelV4FinishReason, identity: ProviderIdentity): FinishReason {
  switch (finish.unified) {
    case 'stop':
    case 'length':
    case 'tool-calls':
    case 'content-filter':
      return finish.unified
    case 'interrupted':
      throw incompleteError(identity, 'the connection closed before the end of the answer')
    default:
      // Without a raw reason, `other` and `error` mean that the provider sent no finish reason at all.
      if (finish.raw === undefined) {
        throw incompleteError(identity, 'the connection closed before the end of the answer')
      }
      if (finish.unified === 'error') throw reportedError(identity, `its finish reason is "${finish.raw}".`)
      return 'other'
  }
}
