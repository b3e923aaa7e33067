// Adapts any model of the AI SDK's provider interface to `Model`, so that we support many
// providers. The SDK does no retries; we do them ourselves. What an answer consists of is read in
// ai-sdk-answer.ts.

import { APICallError, InvalidResponseDataError, JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { AppError } from '../errors/app-error.ts'
import type { ProviderOptions } from '../journal/provider-options.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { AiSdkAnswer } from './ai-sdk-answer.ts'
import { toCallOptions } from './ai-sdk-request.ts'
import { fileSupportOf } from './file-support.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'
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
import type { ToolAdapter } from './provider-tools.ts'
import { watchOptions } from './read-options.ts'

export type AiSdkModelOptions = {
  identity: ProviderIdentity
  /** Called for each request with the model name after the slash. May import the provider's package on first use. */
  load: (model: string) => Promise<LanguageModelV4>
  /** Options that are sent unless the request has others. */
  providerOptions?: ProviderOptions
  /** The name under which the adapter looks for its options, if it is not that of the provider. */
  optionsName?: string | undefined
  /** True for Anthropic, which caches a prompt only up to the marks in it. */
  marksCache?: boolean
  /** The adapter whose provider-run tools a request may have; absent if it has none. */
  toolAdapter?: ToolAdapter | undefined
  ids: Ids
  clock: Pick<Clock, 'now' | 'after'>
}

/** After the end of an answer the rest of the response is read, within these limits, so that the connection can be reused. */
const drainMs = 2_000
const drainPartsMax = 1_000

export function createAiSdkModel(options: AiSdkModelOptions): Model {
  return {
    async *stream(request, signal) {
      signal.throwIfAborted()
      // Aborted when the consumer stops reading, so that the connection closes whatever the adapter does on cancel.
      const consumerDone = new AbortController()
      const bothSignals = AbortSignal.any([signal, consumerDone.signal])
      const answer = new AiSdkAnswer(request, options.identity, options.ids)
      const response: OpenResponse = { finished: null, failed: null }
      const close = () => consumerDone.abort()
      try {
        for (let next: ModelRequest | undefined = request; next !== undefined; next = answer.continuation()) {
          response.finished = null
          yield* read(await begin(options, next, bothSignals, answer), answer, options, response)
        }
      } catch (error) {
        // Some adapters tell the tokens of a failed answer after its error.
        if (response.failed !== null) await drain(response.failed, options.clock, close, (part) => answer.report(part))
        const { reported } = answer
        if (reported !== undefined) yield [{ type: 'spent', usage: reported }]
        if (signal.aborted) throw signal.reason
        throw error
      } finally {
        if (response.finished === null) close()
        else void drain(response.finished, options.clock, close)
      }
    },
  }
}

type OpenResponse = {
  /** The rest of the response, when the answer is complete. */
  finished: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | null
  /** The rest of the response, if the provider reported an error in it. */
  failed: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | null
}

async function drain(
  rest: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  clock: Pick<Clock, 'after'>,
  close: () => void,
  see?: (part: LanguageModelV4StreamPart) => void,
): Promise<void> {
  const limit = clock.after(drainMs, close)
  try {
    for (let count = 0; count < drainPartsMax; count += 1) {
      const { done, value } = await rest.read()
      if (done) break
      see?.(value)
    }
  } catch {
    // The answer is complete, whatever becomes of its connection.
  } finally {
    limit.cancel()
    close()
  }
}

async function begin(
  options: AiSdkModelOptions,
  request: ModelRequest,
  signal: AbortSignal,
  answer: AiSdkAnswer,
): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const model = await options.load(request.model)
  const calls = toCallOptions(request, signal, {
    defaults: options.providerOptions,
    marksCache: options.marksCache === true,
    toolAdapter: options.toolAdapter,
    optionsName: options.optionsName,
    provider: options.identity.provider,
    files: fileSupportOf(model.provider),
  })
  const { provider } = options.identity
  const optionsName = options.optionsName ?? provider
  const watched = watchOptions(calls.providerOptions?.[optionsName] ?? {})
  const providerOptions = { ...calls.providerOptions, [optionsName]: watched.options }
  try {
    const { stream } = await model.doStream({ ...calls, providerOptions })
    answer.ignores(watched.unread().map((name) => `providerOptions.${provider}.${name}`))
    return stream
  } catch (error) {
    throw toProviderError(error, options, isNetworkError(error) ? unreachableError : unsendableError)
  }
}

async function* read(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  answer: AiSdkAnswer,
  options: AiSdkModelOptions,
  response: OpenResponse,
): AsyncGenerator<ModelPart[], void> {
  const { identity } = options
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
    if (part.type === 'error') {
      response.failed = reader
      throw toProviderError(part.error, options, (who, error) => reportedError(who, error))
    }
    const parts: ModelPart[] = []
    const last = answer.take(part, parts)
    // Consumers usually stop after the last part.
    if (last) response.finished = reader
    if (parts.length > 0) yield parts
    if (last) return
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
