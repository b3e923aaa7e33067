// Adapts any model of the AI SDK's provider interface to `Model`, so that we support many
// providers. The SDK does no retries; we do them ourselves.
//
// The SDK's adapters report a truncated stream as a kind of finish. We accept only a finish
// reason that the provider itself sent; anything else is `model_stream_incomplete`.

import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import type { ProviderOptions } from '../journal/provider-options.ts'
import { defined } from '../kit/defined.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { toCallOptions } from './ai-sdk-request.ts'
import {
  argumentsCharsMax,
  finishReasonWith,
  parseCallArguments,
  pushText,
  toToolCallParts,
  usageOf,
} from './answer-parts.ts'
import type { RawCall } from './answer-parts.ts'
import { toolCallsMax, tooManyToolCalls } from './model.ts'
import type { FinishReason, Model, ModelPart, ModelRequest } from './model.ts'
import {
  incompleteError,
  isNetworkError,
  malformedError,
  reportedError,
  statusError,
  unreachableError,
  unsendableError,
} from './provider-error.ts'
import type { ProviderIdentity } from './provider-error.ts'
import { ProviderStateCollector } from './provider-state.ts'

export type AiSdkModelOptions = {
  identity: ProviderIdentity
  /** Called for each request with the model name after the slash. May import the provider's package on first use. */
  load: (model: string) => Promise<LanguageModelV4>
  /** Options that are sent unless the request has others. */
  providerOptions?: ProviderOptions
  /** True for Anthropic, which caches a prompt only up to the marks in it. */
  marksCache?: boolean
  ids: Ids
  clock: Pick<Clock, 'now'>
}

export function createAiSdkModel(options: AiSdkModelOptions): Model {
  return {
    async *stream(request, signal) {
      signal.throwIfAborted()
      // Aborted when the consumer stops reading, so that the connection closes whatever the adapter does on cancel.
      const consumerDone = new AbortController()
      const calls = toCallOptions(request, AbortSignal.any([signal, consumerDone.signal]), {
        defaults: options.providerOptions,
        marksCache: options.marksCache === true,
      })
      try {
        yield* read(await begin(options, request, calls), request, options)
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw error
      } finally {
        consumerDone.abort()
      }
    },
  }
}

async function begin(
  options: AiSdkModelOptions,
  request: ModelRequest,
  calls: LanguageModelV4CallOptions,
): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const model = await options.load(request.model)
  try {
    return (await model.doStream(calls)).stream
  } catch (error) {
    throw toProviderError(error, options, isNetworkError(error) ? unreachableError : unsendableError)
  }
}

async function* read(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  request: ModelRequest,
  options: AiSdkModelOptions,
): AsyncGenerator<ModelPart[], void> {
  const { identity, ids } = options
  const calls: RawCall[] = []
  const state = new ProviderStateCollector(identity)
  let argumentChars = 0
  const reader = stream.getReader()
  for (;;) {
    let result: { done: boolean; value?: LanguageModelV4StreamPart | undefined }
    try {
      result = await reader.read()
    } catch (error) {
      throw toProviderError(error, options, (who, cause) => incompleteError(who, 'the connection broke', cause))
    }
    const part = result.value
    if (result.done || part === undefined) throw incompleteError(identity, 'the stream ended before the answer did')
    const parts: ModelPart[] = []
    switch (part.type) {
      case 'text-delta':
        pushText(parts, 'text', part.delta)
        state.add('text', part.id, part.delta, part.providerMetadata)
        break
      case 'reasoning-delta':
        pushText(parts, 'reasoning', part.delta)
        state.add('reasoning', part.id, part.delta, part.providerMetadata)
        break
      case 'text-start':
      case 'text-end':
        state.add('text', part.id, '', part.providerMetadata)
        break
      case 'reasoning-start':
      case 'reasoning-end':
        state.add('reasoning', part.id, '', part.providerMetadata)
        break
      case 'tool-input-delta':
        // The adapter buffers the arguments until the call is complete, so we limit them here.
        argumentChars += part.delta.length
        if (argumentChars > argumentsCharsMax) {
          throw malformedError(identity, 'the arguments of its tool calls are longer than 8 MiB')
        }
        break
      case 'tool-call':
        if (part.providerExecuted === true) {
          const input = parseCallArguments(part.input, 'stop') ?? part.input
          parts.push({ type: 'provider-call', callId: part.toolCallId, name: part.toolName, input })
          break
        }
        if (calls.length === toolCallsMax) throw tooManyToolCalls()
        calls.push({ id: part.toolCallId, name: part.toolName, rawInput: part.input })
        state.add('call', part.toolCallId, '', part.providerMetadata)
        break
      case 'tool-result':
        if (part.preliminary === true) break
        parts.push({
          type: 'provider-result',
          callId: part.toolCallId,
          // The adapters build it from JSON of the provider, so it is a JSON value.
          output: part.result as JsonValue,
          isError: part.isError === true,
        })
        break
      case 'source':
        parts.push(
          part.sourceType === 'url'
            ? { type: 'source', url: part.url, ...defined({ title: part.title }) }
            : { type: 'source', title: part.title, mediaType: part.mediaType },
        )
        break
      case 'error':
        throw toProviderError(part.error, options, (who, error) => reportedError(who, error))
      case 'finish': {
        const reason = finishOf(part.finishReason, identity)
        const { inputTokens, outputTokens } = part.usage
        const usage = usageOf({
          input: inputTokens.total,
          cached: inputTokens.cacheRead,
          cacheWrite: inputTokens.cacheWrite,
          output: outputTokens.total,
          reasoning: outputTokens.reasoning,
        })
        parts.push(...toToolCallParts(calls, reason, request, ids), {
          type: 'finish',
          reason: finishReasonWith(calls.length, reason),
          ...defined({ usage, state: state.toJson() }),
        })
        yield parts
        return
      }
      default:
      // Starts, ends, metadata and files are ignored: we have no part for them.
    }
    if (parts.length > 0) yield parts
  }
}

function finishOf(finish: { unified: string; raw: string | undefined }, identity: ProviderIdentity): FinishReason {
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

function toProviderError(
  error: unknown,
  options: AiSdkModelOptions,
  otherwise: (identity: ProviderIdentity, error: unknown) => AppError,
): AppError {
  const { identity } = options
  const own = ownErrorIn(error)
  if (own !== undefined) return own
  if (APICallError.isInstance(error)) {
    if (error.statusCode === undefined) return unreachableError(identity, error.cause)
    // A success status with an unreadable body means that the answer was truncated.
    if (error.statusCode < 300) return incompleteError(identity, 'its answer cannot be read', error.cause)
    return statusError(identity, {
      status: error.statusCode,
      body: error.responseBody ?? error.message,
      retryAfter: error.responseHeaders?.['retry-after'],
      now: options.clock.now(),
    })
  }
  if (JSONParseError.isInstance(error)) return incompleteError(identity, 'a part of it is not valid JSON')
  if (TypeValidationError.isInstance(error) && otherwise !== unsendableError) {
    const value = error.value
    if (value !== null && typeof value === 'object' && 'error' in value) return reportedError(identity, value.error)
    return malformedError(identity, 'it does not have the shape of that provider’s answers')
  }
  if (InvalidResponseDataError.isInstance(error)) {
    // Without data, the adapter means that expected data never arrived.
    if (error.data === undefined) return incompleteError(identity, 'the connection closed before the end of the answer')
    return malformedError(identity, 'it asks for a tool without naming it')
  }
  return otherwise(identity, error)
}

/** Finds an AppError of our own `fetch`, which adapters wrap as the cause of their errors. */
function ownErrorIn(error: unknown): AppError | undefined {
  let current = error
  for (let depth = 0; depth < 4 && current instanceof Error; depth += 1) {
    if (current instanceof AppError) return current
    current = current.cause
  }
  return undefined
}
