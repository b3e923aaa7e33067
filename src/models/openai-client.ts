// Our own client for the OpenAI chat-completions API, which most model servers support.
// This is the hot path of the server: it yields one array of parts for each read of the
// socket, and uses no web streams and no promise per token.
//
// Back-pressure: parts that the consumer has not read wait in one array. When they exceed a
// limit the socket is paused, so a slow consumer costs a bounded amount of memory.

import type * as http from 'node:http'
import type * as https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { nodeHttp, nodeHttps } from '../kit/node-http.ts'
import { EarlyConnection } from './early-connection.ts'
import { usesProxies } from './kept-connections.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'
import { OpenAiDecoder } from './openai-decoder.ts'
import { openAiBaseUrl, toChatBody } from './openai-request.ts'
import { incompleteError, malformedError, statusError, unreachableError } from './provider-error.ts'
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
/** After the end of an answer we read the rest of the response, within these limits, so that the connection can be reused. */
const drainIdleMs = 2_000
const drainBytesMax = 64 * 1024

export function createOpenAiClient(options: OpenAiClientOptions): Model {
  const base = (options.baseUrl ?? openAiBaseUrl).replace(/\/+$/, '')
  const url = new URL(`${base}/chat/completions`)
  const { environment = {} } = options
  const transport = url.protocol === 'https:' ? nodeHttps : nodeHttp
  const target: Target = {
    address: addressOf(url),
    transport,
    // Idle connections are reused, because a TLS handshake takes longer than a short answer.
    agent: new transport.Agent({
      keepAlive: true,
      scheduling: 'lifo',
      maxFreeSockets: 256,
      ...(usesProxies(environment) ? { proxyEnv: environment } : {}),
    }),
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
  // An agent that asks a proxy for its connections makes them in its own way.
  const early = usesProxies(environment) ? undefined : new EarlyConnection(target.agent, target.address)
  const settings = { provider: target.identity.provider, dropsReasoning: options.dropsReasoning === true }
  return {
    prepare: () => early?.open(),
    stream(request, signal) {
      return {
        [Symbol.asyncIterator]: () => new Answer(target, request, toChatBody(request, base, settings), signal),
      }
    },
  }
}

type Target = {
  address: Address
  transport: typeof http | typeof https
  agent: http.Agent | https.Agent
  identity: ProviderIdentity
  /** As pairs: an object would be copied into each request and kept there as long as its answer takes. */
  headers: readonly [name: string, value: string][]
  ids: Ids
  clock: Pick<Clock, 'now'>
}

type Address = { protocol: string; hostname: string; port: string | null; path: string }

/** What a request needs of an address, and no more, because each request copies it. */
function addressOf(url: URL): Address {
  const { hostname } = urlToHttpOptions(url)
  return { protocol: url.protocol, hostname: hostname ?? '', port: url.port || null, path: url.pathname + url.search }
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

/**
 * All requests share their listeners, which find the answer under this name: functions of its own would be half a kilobyte of an
 * answer that has not begun.
 */
const answerOf = Symbol('answer')

type Outgoing = http.ClientRequest & { [answerOf]: Answer }
type Incoming = http.IncomingMessage & { [answerOf]: Answer }

type Step = IteratorResult<ModelPart[], undefined>

const over: Step = { done: true, value: undefined }

const noParts: ModelPart[] = []

/** One request and its answer. The request is sent when `next` is called for the first time. */
class Answer implements AsyncIterator<ModelPart[], undefined> {
  readonly #target: Target
  readonly #request: ModelRequest
  /** Released when it was sent: it holds the whole prompt, and an answer may take long. */
  #body: string
  readonly #signal: AbortSignal
  /** Made when the answer begins, which may take long. */
  #decoder: OpenAiDecoder | undefined
  #outgoing: http.ClientRequest | undefined
  #incoming: http.IncomingMessage | undefined
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
    if (this.#outgoing === undefined && !this.#closed) this.#send()
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

  /** Runs after all that was read with the first part: Node hands out each chunk of a read on its own, and the tokens of a read share a commit. */
  static #nextOf(this: void, answer: Answer): Step | Promise<Step> {
    return answer.#ready.length > 0 ? answer.#takeReady() : answer.next()
  }

  #takeReady(): Step {
    const value = this.#ready
    this.#ready = noParts
    this.#unreadBytes = 0
    if (this.#paused) {
      this.#paused = false
      this.#incoming?.resume()
    }
    return { done: false, value }
  }

  /** Called if the consumer stops reading early. */
  return(): Promise<Step> {
    this.#ready = noParts
    this.#close()
    // Consumers usually stop after the last part. The connection can then be reused.
    if (this.#decoder?.finished !== true) this.#outgoing?.destroy()
    return Promise.resolve(over)
  }

  #send(): void {
    if (this.#signal.aborted) {
      this.#fail(this.#signal.reason)
      return
    }
    this.#signal.addEventListener('abort', this.#abort, { once: true })
    const { address, transport, agent, headers } = this.#target
    const { traceparent } = this.#request
    const sent = headers.flat()
    if (traceparent !== undefined) sent.push('traceparent', traceparent)
    sent.push('content-length', String(Buffer.byteLength(this.#body)))
    const { protocol, hostname, port, path } = address
    const created = transport.request({ protocol, hostname, port, path, method: 'POST', agent, headers: sent })
    // They are in the head now, and the list is kept with the options of the request.
    sent.length = 0
    const outgoing: Outgoing = Object.assign(created, { [answerOf]: this })
    this.#outgoing = outgoing
    outgoing.on('response', Answer.#onResponse)
    outgoing.on('error', Answer.#onRequestError)
    outgoing.on('close', Answer.#onRequestClose)
    // As a text, so that Node sends it in one piece with the head.
    outgoing.end(this.#body)
    this.#body = ''
  }

  static #onResponse(this: Outgoing, incoming: http.IncomingMessage): void {
    this[answerOf].#answered(incoming)
  }

  /** Only errors before the response begins are handled here. Later ones are reported by the response itself. */
  static #onRequestError(this: Outgoing, error: Error): void {
    this[answerOf].#unanswered(error)
  }

  /** If the provider answers 101 although the request asked for no upgrade, Node closes the connection and emits neither a response nor an error. */
  static #onRequestClose(this: Outgoing): void {
    this[answerOf].#unanswered(undefined)
  }

  #unanswered(error: Error | undefined): void {
    if (this.#incoming === undefined) this.#fail(unreachableError(this.#target.identity, error))
  }

  readonly #abort = (): void => {
    this.#ready = noParts
    this.#outgoing?.destroy()
    this.#fail(this.#signal.reason)
  }

  #answered(incoming: http.IncomingMessage): void {
    this.#incoming = incoming
    const status = incoming.statusCode ?? 0
    if (status < 200 || status > 299) {
      this.#readWhole(incoming, errorBytesMax, (body) => {
        const retryAfter = incoming.headers['retry-after']
        const now = this.#target.clock.now()
        this.#fail(statusError(this.#target.identity, { status, body, retryAfter, now }))
      })
      return
    }
    if (/^application\/json\b/i.test(incoming.headers['content-type'] ?? '')) {
      this.#readWhole(incoming, wholeBytesMax, (body, complete) => {
        if (!complete) throw incompleteError(this.#target.identity, 'the connection closed in the middle of it')
        this.#decoding().whole(body)
        this.#deliver()
      })
      return
    }
    if (/^text\/html\b/i.test(incoming.headers['content-type'] ?? '')) {
      incoming.on('error', () => {}) // what is left of the page does not matter
      incoming.destroy()
      this.#fail(malformedError(this.#target.identity, 'it is a web page; check the address of the server'))
      return
    }
    const stream: Incoming = Object.assign(incoming, { [answerOf]: this })
    stream.on('data', Answer.#onData)
    stream.on('end', Answer.#onEnd)
    stream.on('error', Answer.#onError)
    // If we destroy the socket ourselves, there is no error event, only this one.
    stream.on('close', Answer.#onEnd)
  }

  static #onData(this: Incoming, bytes: Buffer): void {
    this[answerOf].#read(bytes)
  }

  static #onEnd(this: Incoming): void {
    this[answerOf].#ended(undefined)
  }

  static #onError(this: Incoming, error: Error): void {
    this[answerOf].#ended(error)
  }

  #decoding(): OpenAiDecoder {
    this.#decoder ??= new OpenAiDecoder(this.#target.identity, this.#request, this.#target.ids)
    return this.#decoder
  }

  #read(bytes: Buffer): void {
    if (this.#closed) return
    try {
      this.#decoding().feed(bytes)
    } catch (error) {
      this.#deliver()
      this.#outgoing?.destroy()
      this.#fail(error)
      return
    }
    this.#unreadBytes += bytes.length
    this.#deliver()
    if (this.#closed) return
    if (this.#ready.length === 0) {
      this.#unreadBytes = 0
    } else if (this.#unreadBytes > unreadBytesMax) {
      this.#paused = true
      this.#incoming?.pause()
    }
  }

  #ended(error: Error | undefined): void {
    if (this.#closed) return
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
      this.#drain()
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

  /** The answer is complete. Reads the rest of the response, so that the connection can be reused. */
  #drain(): void {
    const incoming = this.#incoming
    if (incoming === undefined || incoming.complete) return
    let bytes = 0
    incoming.on('data', (more: Buffer) => {
      bytes += more.length
      if (bytes > drainBytesMax) incoming.destroy()
    })
    incoming.setTimeout(drainIdleMs, () => {
      if (!incoming.complete) incoming.destroy()
    })
    incoming.resume()
  }

  #readWhole(incoming: http.IncomingMessage, bytesMax: number, use: (body: string, complete: boolean) => void): void {
    const pieces: Buffer[] = []
    let length = 0
    let settled = false
    const settle = (complete: boolean): void => {
      if (settled || this.#closed) return
      settled = true
      try {
        use(Buffer.concat(pieces).toString('utf8'), complete)
      } catch (error) {
        this.#fail(error)
      }
    }
    incoming.on('data', (bytes: Buffer) => {
      length += bytes.length
      if (length <= bytesMax) {
        pieces.push(bytes)
        return
      }
      if (bytesMax === wholeBytesMax) this.#fail(malformedError(this.#target.identity, 'it is longer than 64 MiB'))
      settle(false)
      incoming.destroy()
    })
    incoming.on('end', () => settle(true))
    incoming.on('error', () => settle(false))
    incoming.on('close', () => settle(false))
  }
}
