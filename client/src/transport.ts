// Sends requests: the address and the headers of each, its time limit, and its retries. Time, randomness and `fetch` are
// options, so that a test needs no real network and no waiting.

import { errorOf, PolylogError } from './error.ts'

export type ClientOptions = {
  /** The address of the server, for example `https://agents.example.com`. Default: the origin of the page. */
  baseUrl?: string
  /** Sent with every request. A function is called for each attempt, so that a token can be renewed. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>)
  /** The user, for a server that does not require a login. */
  userId?: string
  /** How often a request is repeated if the server cannot be reached or is busy. Default 6. */
  requestRetries?: number
  /** How often a stream is opened again without having received anything. Default: without limit. */
  streamRetries?: number
  /** A connection that is silent for this long is opened again. The server sends a ping every 15 s. Default 45,000. */
  idleTimeoutMs?: number
  fetch?: typeof globalThis.fetch
  /** Calls `fire` after `delayMs`; returns a function that prevents it. */
  after?: (delayMs: number, fire: () => void) => () => void
  /** The time of day in milliseconds; it goes on while the machine sleeps. */
  now?: () => number
  /** From 0 up to 1. */
  random?: () => number
  /** A new idempotency key. */
  newKey?: () => string
}

export type RequestOptions = {
  /** Aborting ends the request or the reading. It does not cancel the run. */
  signal?: AbortSignal | undefined
}

export type Attempt = RequestOptions & {
  method: string
  path: string
  query?: Record<string, string | number | undefined>
  /** Sent as JSON, unless it is a `Blob` or bytes. */
  body?: unknown
  headers?: Record<string, string>
  /** False: the request is not repeated if it is unknown whether the server has received it. */
  repeatable?: boolean
  /** True: the server runs an agent before it answers, however long that takes. The answer is awaited without a limit. */
  runsAgent?: boolean | undefined
}

/** A response whose body is still being received. */
export type Connection = { response: Response; close(reason?: unknown): void }

/** The limits of the waiting time between two attempts. */
const firstWaitMs = 500
const longestWaitMs = 30_000
/** A longer Retry-After is not obeyed to the letter: timers cannot wait longer than 24 days. */
const retryAfterMaxMs = 3_600_000

/** How often a silent connection is looked at. */
const watchSliceMs = 5000

/** Not every runtime has events on its global object. */
export const page = globalThis as Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>>

export type Transport = ReturnType<typeof createTransport>

export function createTransport(options: ClientOptions) {
  const {
    baseUrl = '',
    headers = {},
    userId,
    requestRetries = 6,
    streamRetries = Infinity,
    idleTimeoutMs = 45_000,
    after = setTimer,
    now = Date.now,
    random = Math.random,
    newKey = randomKey,
  } = options
  // Browsers refuse to call `fetch` as a method of another object.
  const send: typeof globalThis.fetch = options.fetch ?? ((...given) => fetch(...given))

  function urlOf(path: string, query: Attempt['query'] = {}): string {
    const named = Object.entries({ userId, ...query }).filter(([, value]) => value !== undefined)
    const search = String(new URLSearchParams(named.map(([name, value]) => [name, String(value)])))
    return baseUrl.replace(/\/+$/, '') + path + (search && `?${search}`)
  }

  /**
   * Calls `fire` after `idleTimeoutMs` without a `touch`. Timers stand still while the machine sleeps, so the time of day is
   * looked at every few seconds: a connection that died during the sleep is noticed soon after it.
   */
  function watch(fire: () => void): { touch(): void; end(): void } {
    const sliceMs = Math.min(watchSliceMs, idleTimeoutMs)
    let leftMs = idleTimeoutMs
    let seenAt = now()
    let cancel = after(sliceMs, tick)
    function tick(): void {
      const at = now()
      // The time of day may be set back.
      leftMs -= Math.max(sliceMs, at - seenAt)
      seenAt = at
      if (leftMs > 0) cancel = after(sliceMs, tick)
      else fire()
    }
    return { touch: () => ((leftMs = idleTimeoutMs), (seenAt = now())), end: () => cancel() }
  }

  /** One attempt; resolves when the headers have come. Throws a PolylogError unless the status is 2xx. */
  async function open(attempt: Attempt): Promise<Connection> {
    const { method, path, query, body, headers: more, signal, runsAgent } = attempt
    signal?.throwIfAborted()
    const controller = new AbortController()
    const abort = () => controller.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    const close = (reason?: unknown) => {
      signal?.removeEventListener('abort', abort)
      controller.abort(reason)
    }
    const isBytes = body instanceof Blob || body instanceof Uint8Array
    // A large file may take longer than any answer.
    const silence = isBytes || runsAgent === true ? undefined : watch(close)
    try {
      const response = await send(urlOf(path, query), {
        method,
        headers: {
          ...(body === undefined || isBytes ? {} : { 'content-type': 'application/json' }),
          ...(typeof headers === 'function' ? await headers() : headers),
          ...more,
        },
        ...(body === undefined ? {} : { body: isBytes ? (body as Blob) : JSON.stringify(body) }),
        cache: 'no-store',
        signal: controller.signal,
      })
      if (!response.ok) throw await errorOf(response)
      return { response, close }
    } catch (error) {
      close()
      signal?.throwIfAborted()
      throw lostConnection(error, 'network_error', 'The server cannot be reached.')
    } finally {
      silence?.end()
    }
  }

  /** Waits before the next attempt. Ends early if the browser reports that it is online again. */
  function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        cancel()
        signal?.removeEventListener('abort', done)
        page.removeEventListener?.('online', done)
        if (signal?.aborted === true) reject(signal.reason as Error)
        else resolve()
      }
      const cancel = after(delayMs, done)
      signal?.addEventListener('abort', done)
      page.addEventListener?.('online', done)
      if (signal?.aborted === true) done()
    })
  }

  /** The time before attempt number `attempt` (1, 2, 3…): exponential with jitter, and at least what the server asks for. */
  function waitMs(attempt: number, { retryAfterMs }: PolylogError, firstMs = firstWaitMs): number {
    const backOff = Math.min(longestWaitMs, firstMs * 2 ** (attempt - 1)) * (0.5 + random() / 2)
    return Math.max(backOff, Math.min(retryAfterMs, retryAfterMaxMs))
  }

  /** As `open`, and repeats the request while that is safe and may help. */
  async function request(attempt: Attempt): Promise<Connection> {
    for (let failed = 1; ; failed++) {
      try {
        return await open(attempt)
      } catch (error) {
        const isSafe = attempt.repeatable !== false || (error as PolylogError).status > 0
        if (!(error instanceof PolylogError) || !error.retryable || !isSafe || failed > requestRetries) throw error
        await pause(waitMs(failed, error), attempt.signal)
      }
    }
  }

  /** The parsed body of the answer. */
  async function json<Body>(attempt: Attempt): Promise<Body> {
    const { response, close } = await request(attempt)
    const silence = watch(close)
    try {
      return (response.status === 204 ? undefined : await response.json()) as Body
    } catch (error) {
      attempt.signal?.throwIfAborted()
      throw lostConnection(error, 'network_error', 'The connection broke before the whole answer had come.')
    } finally {
      silence.end()
      close()
    }
  }

  return { open, request, json, pause, waitMs, urlOf, watch, newKey, streamRetries }
}

export function lostConnection(cause: unknown, code: string, message: string): PolylogError {
  return cause instanceof PolylogError ? cause : new PolylogError({ code, message, retryable: true, cause })
}

function setTimer(delayMs: number, fire: () => void): () => void {
  const timer = setTimeout(fire, delayMs)
  return () => clearTimeout(timer)
}

/** Not `randomUUID`, which pages without TLS do not have. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
