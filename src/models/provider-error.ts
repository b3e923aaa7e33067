// Maps the failures of providers (status codes, socket errors, error bodies) to our error
// codes. All model clients use this file, so retries and messages do not depend on the client.
//
// A provider's message may contain the API key, so it is redacted and shortened here.

import { AppError } from '../errors/app-error.ts'
import { defined } from '../kit/defined.ts'

/** The provider as it appears in error messages. */
export type ProviderIdentity = {
  provider: string
  /** The environment variable that holds the key. */
  keyVariable: string | undefined
  /** Texts that are redacted from every message. */
  secrets: readonly string[]
}

export type ProviderFailure = {
  status: number
  /** The raw body; it need not be JSON. */
  body: string
  retryAfter?: string | undefined
  /** Epoch milliseconds, to compute the wait if `retryAfter` is a date. */
  now: number
}

/** Messages are cut to this length, because a provider may answer with an HTML page. */
const messageCharsMax = 500

export function statusError(identity: ProviderIdentity, failure: ProviderFailure): AppError {
  const { status } = failure
  const reported = readErrorBody(failure.body)
  const words = quote(identity, reported.message)
  const details = { provider: identity.provider, status }
  if (status === 401 || status === 403) {
    const advice = identity.keyVariable === undefined ? 'Check its credentials.' : `Check ${identity.keyVariable}.`
    // The provider's message is left out, because messages about credentials often contain a part of the key.
    return new AppError('model_auth_failed', `${identity.provider} refused the credentials (${status}). ${advice}`, {
      details,
    })
  }
  if (status === 429) {
    const retryAfterMs = parseRetryAfter(failure.retryAfter, failure.now)
    // An account without credit is 429 too, but a retry does not help.
    const exhausted = reported.code === 'insufficient_quota'
    return new AppError(
      'model_rate_limited',
      exhausted
        ? `${identity.provider} says that the account's quota is used up (429).${words}`
        : `${identity.provider} limits the rate of requests (429). Try again later.${words}`,
      { retryable: !exhausted, details: retryAfterMs === undefined ? details : { ...details, retryAfterMs } },
    )
  }
  if (status === 408 || status >= 500) {
    const retryAfterMs = parseRetryAfter(failure.retryAfter, failure.now)
    return new AppError('model_unavailable', `${identity.provider} cannot answer now (${status}).${words}`, {
      retryable: true,
      details: retryAfterMs === undefined ? details : { ...details, retryAfterMs },
    })
  }
  if (reported.code === 'content_filter') {
    return new AppError('model_content_filtered', `${identity.provider} filtered the request.${words}`, { details })
  }
  if (status === 413 || isContextExceeded(reported)) return contextExceeded(identity, words, details)
  return new AppError('model_error', `${identity.provider} refused the request (${status}).${words}`, { details })
}

/** The connection could not be made, or broke before the response began. */
export function unreachableError(identity: ProviderIdentity, cause: unknown): AppError {
  const code = errorCodeOf(cause)
  return new AppError(
    'model_unavailable',
    `${identity.provider} cannot be reached${code === undefined ? '' : ` (${code})`}.`,
    { retryable: true, details: { provider: identity.provider }, cause },
  )
}

/**
 * The client of the provider refused the request itself, for example because of an option or a file that the provider does
 * not have. No request was sent, and a retry would fail in the same way.
 */
export function unsendableError(identity: ProviderIdentity, error: unknown): AppError {
  const said = error instanceof Error ? [error.message, error.cause instanceof Error ? error.cause.message : ''] : []
  const words = quote(identity, said.filter((text) => text !== '').join(': '))
  return new AppError('model_error', `The request cannot be sent to ${identity.provider}.${words}`, {
    details: { provider: identity.provider },
    cause: error,
  })
}

/** Whether an error of `fetch` says that the connection failed, as opposed to a mistake in the request. */
export function isNetworkError(error: unknown): boolean {
  return (
    errorCodeOf(error) !== undefined || (error instanceof TypeError && /fetch failed|terminated/.test(error.message))
  )
}

/** The answer was truncated. */
export function incompleteError(identity: ProviderIdentity, why: string, cause?: unknown): AppError {
  return new AppError('model_stream_incomplete', `The answer of ${identity.provider} is incomplete: ${why}.`, {
    retryable: true,
    details: { provider: identity.provider },
    ...defined({ cause }),
  })
}

/** The provider reported an error in its stream. */
export function reportedError(identity: ProviderIdentity, error: unknown): AppError {
  const reported = readError(error)
  const words = quote(identity, reported.message)
  if (reported.code === 'content_filter') {
    return new AppError('model_content_filtered', `${identity.provider} filtered the answer.${words}`)
  }
  if (isContextExceeded(reported)) return contextExceeded(identity, words, { provider: identity.provider })
  return new AppError('model_error', `${identity.provider} failed while answering.${words}`, {
    retryable: reported.transient,
    details: { provider: identity.provider },
  })
}

/** The answer violates the provider's API; a retry would hardly help. */
export function malformedError(identity: ProviderIdentity, what: string): AppError {
  return new AppError('model_error', `The answer of ${identity.provider} cannot be used: ${what}.`, {
    details: { provider: identity.provider },
  })
}

/** `Retry-After`: seconds or an HTTP date. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined || value.trim() === '') return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds * 1000) : undefined
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

export function redact(identity: ProviderIdentity, text: string): string {
  let clean = text
  for (const secret of identity.secrets) {
    if (secret !== '') clean = clean.replaceAll(secret, '[key]')
  }
  return clean
}

function quote(identity: ProviderIdentity, message: string): string {
  // Redacted before it is cut, because a key that is cut in half would not be recognised.
  const clean = redact(identity, message).replace(/\s+/g, ' ').trim()
  if (clean === '') return ''
  return ` It said: ${clean.length > messageCharsMax ? `${clean.slice(0, messageCharsMax)}…` : clean}`
}

const contextCodes = new Set(['context_length_exceeded', 'exceed_context_size_error', 'model_context_window_exceeded'])

/** How providers say that a prompt is too long. Only some have a code for it; the others have only a sentence. */
const contextSentences = [
  // Anthropic, Bedrock, and others
  /(?:prompt|input) (?:is )?too long/i,
  // Anthropic (with the answer), OpenAI, MiniMax
  /exceeds? (?:the )?context (?:limit|window)|context window exceeds limit/i,
  // OpenAI's older models, vLLM, SGLang, Mistral, DeepSeek, OpenRouter
  /maximum context length|context length exceeded/i,
  // Google
  /token count.{0,40}exceeds the maximum/i,
  // xAI, Kimi, GLM
  /maximum prompt length|exceeded model token limit|maximum allowed input length/i,
  // llama.cpp, LM Studio
  /available context size|greater than the context length/i,
]

function isContextExceeded({ code, message }: ProviderMessage): boolean {
  return (code !== undefined && contextCodes.has(code)) || contextSentences.some((sentence) => sentence.test(message))
}

function contextExceeded(identity: ProviderIdentity, words: string, details: Record<string, unknown>): AppError {
  return new AppError(
    'model_context_exceeded',
    `The request is longer than the context window of the model at ${identity.provider}. Send a shorter message, or use a model with a larger window.${words}`,
    { details },
  )
}

type ProviderMessage = { message: string; code: string | undefined; transient: boolean }

function readErrorBody(body: string): ProviderMessage {
  try {
    const parsed: unknown = JSON.parse(body)
    if (parsed !== null && typeof parsed === 'object') {
      const inner = 'error' in parsed ? parsed.error : 'message' in parsed || 'detail' in parsed ? parsed : undefined
      if (inner !== undefined) return readError(inner)
    }
  } catch {
    // Not JSON: the text itself is the message.
  }
  return { message: body, code: undefined, transient: false }
}

const transientKinds = new Set([
  'server_error',
  'overloaded_error',
  'rate_limit_error',
  'rate_limit_exceeded',
  'api_error',
])

function readError(error: unknown): ProviderMessage {
  if (typeof error === 'string') return { message: error, code: undefined, transient: false }
  if (error === null || typeof error !== 'object') return { message: '', code: undefined, transient: false }
  const { message, code, type, detail } = error as Record<string, unknown>
  const text = typeof message === 'string' ? message : typeof detail === 'string' ? detail : ''
  return {
    message: text,
    code: typeof code === 'string' ? code : undefined,
    transient:
      (typeof code === 'number' && (code === 408 || code === 429 || code >= 500)) ||
      (typeof code === 'string' && transientKinds.has(code)) ||
      (typeof type === 'string' && transientKinds.has(type)),
  }
}

function errorCodeOf(error: unknown): string | undefined {
  let current = error
  for (let depth = 0; depth < 4 && current !== null && typeof current === 'object'; depth += 1) {
    const { code, cause } = current as { code?: unknown; cause?: unknown }
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code)) return code
    current = cause
  }
  return undefined
}
