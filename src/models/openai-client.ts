// Our own client for the OpenAI chat-completions API, which most model servers support.
// This is the hot path of the server: it yields one array of parts for each read of the
// socket, and uses no web streams and no promise per token.
//
// Back-pressure: parts that the consumer has not read wait in one array. When they exceed a
// limit the socket is paused, so a slow consumer costs a bounded amount of memory.

import { urlToHttpOptions } from 'node:url'
import type { Clock } from '../kit/clock.ts'
import { AgentRequests } from '../kit/http1/agent-requests.ts'
import { DirectRequests } from '../kit/http1/direct-requests.ts'
import type { Exchange, ExchangeReceiver, Requests } from '../kit/http1/exchange.ts'
import type { ResponseHead } from '../kit/http1/response-parser.ts'
import type { Ids } from '../kit/ids.ts'
import { usesProxies } from './kept-connections.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'
import { OpenAiDecoder } from './openai-decoder.ts'
import { openAiBaseUrl, toChatBody } from './openai-request.ts'
import { incompleteError, malformedError, statusError, unreachableError, unsendableError } from './provider-error.ts'
import type { ProviderIdentity } from './provider-error.ts'

export type OpenAiClientOptions = {
  /** With or without a trailing slash. */
  baseUrl?: string | undefined
  apiKey?: string | undefined
  /** The name in error messages; `openai` if absent. */
  provider?: string
  keyVariable?: string | undefined
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Texts that must not be shown, besides the key. */
  secrets?: readonly string[]
  /** True if reasoning must not be sent back; see `toChatBody`. */
  dropsReasoning?: boolean
  /** For its proxies; see `usesProxies`. */
  environment?: Record<string, string | undefined> | undefined
  ids: Ids
  clock: Pick<Clock, 'now'>
}

/** The socket is paused when the consumer has this much to read: some thousand tokens, so the consumer never has to wait for more. */
const unreadBytesMax = 256 * 1024
/** An error body is read only for its message. */
const errorBytesMax = 64 * 1024
/** The limit for an answer that comes as one JSON body instead of a stream. */
const wholeBytesMax = 64 * 1024 * 1024
export function createOpenAiClient(options: OpenAiClientOptions): Model {
  const base = (options.baseUrl ?? openAiBaseUrl).replace(/\/+$/, '')
  const url = new URL(`${base}/chat/completions`)
  const { environment = {} } = options
  const target: Target = {
    requests: usesProxies(environment) ? new AgentRequests(url, { proxyEnv: environment }) : new DirectRequests(url),
    identity: {
      provider: options.provider ?? 'openai',
      keyVariable: 'keyVariable' in options ? options.keyVariable : 'OPENAI_API_KEY',
      secrets: [...(options.apiKey === undefined ? [] : [options.apiKey]), ...(options.secrets ?? [])],
    },
    headers: Object.entries({
      host: url.host,
      'content-type': 'application/json',
      accept: 'text/event-stream',
      // Compression would delay tokens, because it works on blocks.
      'accept-encoding': 'identity',
      ...basicAuthorization(url),
      ...(options.apiKey === undefined || options.apiKey === '' ? {} : { authorization: `Bearer ${options.apiKey}` }),
      ...lowerCased(options.headers),
    }),
    ids: options.ids,
    clock: options.clock,
  }
  const settings = { provider: target.identity.provider, dropsReasoning: options.dropsReasoning === true }
  return {
    prepare: () => target.requests.prepare(),
    stream(request, signal) {
      return {
        [Symbol.asyncIterator]: () => new Answer(target, request, toChatBody(request, base, settings), signal),
      }
    },
  }
}

type Target = {
  requests: Requests
  identity: ProviderIdentity
  headers: readonly [name: string, value: string][]
  ids: Ids
  clock: Pick<Clock, 'now'>
}

/** Header names are the same in any case, and a list of pairs would send both. */
function lowerCased(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** The login in the address of a server. */
function basicAuthorization(url: URL): { authorization?: string } {
  const { auth } = urlToHttpOptions(url)
  return auth == null ? {} : { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }
}

type Step = IteratorResult<ModelPart[], undefined>

const over: Step = { done: true, value: undefined }

const noParts: ModelPart[] = []

/** One request and its answer. The request is sent when `next` is called for the first time. */
class Answer implements AsyncIterator<ModelPart[], undefined>, ExchangeReceiver {
  readonly #target: Target
  readonly #request: ModelRequest
  /** Released when it was sent: it holds the whole prompt, and an answer may take long. */
  #body: string
  readonly #signal: AbortSignal
  /** Made when the answer begins, which may take long. */
  #decoder: OpenAiDecoder | undefined
  /** Undefined before the request is sent, and from the end of the response on. */
  #exchange: Exchange | undefined
  #isSent = false
  /** What the response is read as. Undefined until its head has come. */
  #reading: 'stream' | WholeBody | undefined
  #ready = noParts
  #unreadBytes = 0
  #paused = false
  /** Resolved with this answer, which then has parts that are ready. */
  #waiting: { resolve(answer: Answer): void; reject(error: unknown): void } | undefined
  #closed = false
  /** Thrown once, after all parts that were read before it. */
  #failure: { error: unknown } | undefined

  constructor(target: Target, request: ModelRequest, body: string, signal: AbortSignal) {
    this.#target = target
    this.#request = request
    this.#body = body
    this.#signal = signal
  }

  next(): Promise<Step> {
    if (!this.#isSent && !this.#closed) this.#send()
    if (this.#ready.length > 0) return Promise.resolve(this.#takeReady())
    if (this.#failure !== undefined) {
      const { error } = this.#failure
      this.#failure = undefined
      return Promise.reject(error)
    }
    if (this.#closed) return Promise.resolve(over)
    const parts = new Promise<Answer>((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
    return parts.then(Answer.#nextOf)
  }

  /** Runs after all that was read with the first part, so that the tokens of a read share a commit. */
  static #nextOf(this: void, answer: Answer): Step | Promise<Step> {
    return answer.#ready.length > 0 ? answer.#takeReady() : answer.next()
  }

  #takeReady(): Step {
    const value = this.#ready
    this.#ready = noParts
    this.#unreadBytes = 0
    if (this.#paused) {
      this.#paused = false
      this.#exchange?.resume()
    }
    return { done: false, value }
  }

  /** Called if the consumer stops reading early. */
  return(): Promise<Step> {
    this.#ready = noParts
    this.#close()
    // Consumers usually stop after the last part. The connection can then be reused.
    if (this.#decoder?.finished !== true) this.#destroy()
    return Promise.resolve(over)
  }

  #send(): void {
    this.#isSent = true
    if (this.#signal.aborted) {
      this.#fail(this.#signal.reason)
      return
    }
    this.#signal.addEventListener('abort', this.#abort, { once: true })
    const { requests, headers, identity } = this.#target
    const { traceparent } = this.#request
    const body = this.#body
    this.#body = ''
    try {
      const sent = traceparent === undefined ? headers : [...headers, ['traceparent', traceparent] as const]
      this.#exchange = requests.post({ headers: sent, body }, this)
    } catch (error) {
      this.#fail(unsendableError(identity, error))
    }
  }

  readonly #abort = (): void => {
    this.#ready = noParts
    this.#destroy()
    this.#fail(this.#signal.reason)
  }

  #destroy(): void {
    this.#exchange?.destroy()
    this.#exchange = undefined
  }

  head({ status, headers }: ResponseHead): void {
    const { identity, clock } = this.#target
    const contentType = headers.get('content-type') ?? ''
    if (status < 200 || status > 299) {
      const retryAfter = headers.get('retry-after')
      this.#reading = new WholeBody(errorBytesMax, (body) => {
        throw statusError(identity, { status, body, retryAfter, now: clock.now() })
      })
    } else if (/^application\/json\b/i.test(contentType)) {
      this.#reading = new WholeBody(wholeBytesMax, (body, end) => {
        if (end === 'too long') throw malformedError(identity, 'it is longer than 64 MiB')
        if (end === 'cut') throw incompleteError(identity, 'the connection closed in the middle of it')
        this.#decoding().whole(body)
      })
    } else if (/^text\/html\b/i.test(contentType)) {
      this.#destroy()
      this.#fail(malformedError(identity, 'it is a web page; check the address of the server'))
    } else this.#reading = 'stream'
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (this.#closed) return
    if (this.#reading === 'stream') this.#read(bytes, from, to)
    else if (this.#reading?.add(bytes, from, to) === false) {
      this.#destroy()
      this.#useWhole(this.#reading, 'too long')
    }
  }

  ended(error: Error | undefined): void {
    this.#exchange = undefined
    if (this.#closed) return
    if (this.#reading === undefined) this.#fail(unreachableError(this.#target.identity, error))
    else if (this.#reading === 'stream') this.#ended(error)
    else this.#useWhole(this.#reading, error === undefined ? 'complete' : 'cut')
  }

  #useWhole(body: WholeBody, end: BodyEnd): void {
    try {
      body.use(end)
      this.#deliver()
    } catch (error) {
      this.#fail(error)
    }
  }

  #decoding(): OpenAiDecoder {
    this.#decoder ??= new OpenAiDecoder(this.#target.identity, this.#request, this.#target.ids)
    return this.#decoder
  }

  #read(bytes: Buffer, from: number, to: number): void {
    try {
      this.#decoding().feed(bytes, from, to)
    } catch (error) {
      this.#deliver()
      this.#destroy()
      this.#fail(error)
      return
    }
    this.#unreadBytes += to - from
    this.#deliver()
    if (this.#closed) return
    if (this.#ready.length === 0) {
      this.#unreadBytes = 0
    } else if (this.#unreadBytes > unreadBytesMax) {
      this.#paused = true
      this.#exchange?.pause()
    }
  }

  #ended(error: Error | undefined): void {
    try {
      this.#decoding().end(error)
      this.#deliver()
    } catch (failure) {
      this.#deliver()
      this.#fail(failure)
    }
  }

  /** Gives the decoded parts to the consumer, and finishes when the answer is complete. */
  #deliver(): void {
    const decoder = this.#decoding()
    const parts = decoder.take()
    if (decoder.finished) {
      this.#close()
      this.#exchange?.leave()
      this.#exchange = undefined
    }
    if (parts.length > 0) this.#give(parts)
  }

  #give(parts: ModelPart[]): void {
    if (this.#ready.length === 0) this.#ready = parts
    else for (const part of parts) this.#ready.push(part)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve(this)
  }

  #fail(error: unknown): void {
    if (this.#closed) return
    this.#close()
    const usage = this.#decoder?.usage
    if (usage !== undefined) this.#give([{ type: 'spent', usage }])
    const waiting = this.#waiting
    if (waiting !== undefined) {
      this.#waiting = undefined
      waiting.reject(error)
    } else {
      this.#failure = { error }
    }
  }

  #close(): void {
    this.#closed = true
    this.#signal.removeEventListener('abort', this.#abort)
  }
}

type BodyEnd = 'complete' | 'cut' | 'too long'

/** A body that is read as a whole, up to a limit. */
class WholeBody {
  readonly #bytesMax: number
  readonly #use: (body: string, end: BodyEnd) => void
  readonly #pieces: Buffer[] = []
  #length = 0

  constructor(bytesMax: number, use: (body: string, end: BodyEnd) => void) {
    this.#bytesMax = bytesMax
    this.#use = use
  }

  /** Returns false if it is too long. */
  add(bytes: Buffer, from: number, to: number): boolean {
    this.#length += to - from
    if (this.#length > this.#bytesMax) return false
    // The bytes are overwritten by the next read.
    this.#pieces.push(Buffer.from(bytes.subarray(from, to)))
    return true
  }

  use(end: BodyEnd): void {
    this.#use(Buffer.concat(this.#pieces).toString('utf8'), end)
  }
}
