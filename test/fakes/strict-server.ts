// What the strict stand-ins of real providers share: a server in a process of its own, answers
// that a test queues in one neutral form, and the requests that came in. A request that the real
// API would refuse gets the status and the words of that API.
//
//   POST /control/script    {answers: Block[][]}   queued
//   POST /control/always    {when, answer}         the answer to every request that has this text
//   POST /control/release   ends every stall
//   POST /control/window    {tokens}               longer prompts are refused
//   POST /control/reset     forgets answers, requests, the window, and what was signed or cached
//   GET  /control/requests  everything that was asked so far
//   GET  /control/wait?requests=n   the same, as soon as there are that many

import { createHash } from 'node:crypto'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'

/** A block of an answer, in the order in which the model says it. */
export type Block =
  /** Signed or encrypted reasoning. `redacted`: without its text. */
  | { think: string; redacted?: true }
  | { text: string[] }
  | { call: string; input: unknown; id?: string }
  /** The provider searches the web itself and finds these pages. */
  | { search: string; pages: { url: string; title: string }[] }
  /** Ends the answer; without it `tool` if there are calls, else `stop`. */
  | { finish: 'stop' | 'tool' | 'length' | 'refusal' | 'pause' }
  /** Waits until a release, or until the client is gone. */
  | { stall: true }
  /** Cuts the connection. */
  | { cut: true }
  /** The provider is overloaded: as a status if it is the first block, else in the stream. */
  | { overloaded: true }

export type JsonObject = { [name: string]: unknown }

export type StrictRequest = {
  path: string
  body: JsonObject
  /** What the request was refused for; null if it was accepted. */
  refused: string | null
  usage: JsonObject | null
}

/** Thrown by the checks of a provider. */
export class Refusal extends Error {
  readonly status: number

  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export type Writer = {
  /** One event of the stream. */
  frame(data: JsonObject, event?: string): void
}

export type StrictProvider = {
  /** Whether the path belongs to this provider. */
  serves(path: string): boolean
  /** Throws a Refusal for a request that the real API would refuse. Returns the usage of the prompt. */
  check(body: JsonObject, headers: http.IncomingHttpHeaders, path: string): JsonObject
  refusal(refusal: Refusal): JsonObject
  /** How the provider says that a prompt is too long. */
  tooLong(tokens: number, window: number): string
  overloaded: { status: number; body: JsonObject; frame: [data: JsonObject, event?: string] }
  /** Writes a stream up to the first block that has no form of its own, and goes on after it. */
  answer(body: JsonObject, usage: JsonObject): AnswerWriter
  reset(): void
}

export type AnswerWriter = {
  begin(writer: Writer): void
  block(
    block: Extract<Block, { think: string } | { text: string[] } | { call: string } | { search: string }>,
    writer: Writer,
  ): void
  /** `pause`: the provider wants to be asked to go on; only Anthropic does. */
  finish(reason: 'stop' | 'tool' | 'length' | 'refusal' | 'pause', writer: Writer): void
}

export function serveStrict(provider: StrictProvider): void {
  let scripts: Block[][] = []
  let window = Infinity
  let always: { when: string; answer: Block[] }[] = []
  let requests: StrictRequest[] = []
  let stalls = new Set<() => void>()
  let waiters: (() => void)[] = []
  const wake = () => {
    const due = waiters
    waiters = []
    for (const check of due) check()
  }
  const release = () => {
    const waiting = stalls
    stalls = new Set()
    for (const go of waiting) go()
  }

  const server = http.createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => {
      process.stderr.write(`strict provider: ${String(error instanceof Error ? error.stack : error)}\n`)
      response.destroy()
    })
  })
  // As real providers do; with the 5 seconds of Node, a busy machine sends a request on a connection that is just being closed.
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
  })
  // The parent holds the other end of stdin: when it is gone, so are we.
  process.stdin.on('end', () => process.exit(0))
  process.stdin.resume()

  async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake')
    const text = await readBody(request)
    if (url.pathname.startsWith('/control/')) return control(url, text, response)
    if (!provider.serves(url.pathname)) return sendJson(response, 404, { error: { message: `No ${url.pathname}` } })
    const body = JSON.parse(text) as JsonObject
    const seen: StrictRequest = { path: url.pathname, body, refused: null, usage: null }
    requests.push(seen)
    try {
      seen.usage = provider.check(body, request.headers, url.pathname)
      const tokens = tokensOf(body)
      if (tokens > window) throw new Refusal(provider.tooLong(tokens, window))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      seen.refused = error.message
      wake()
      return sendJson(response, error.status, provider.refusal(error))
    }
    wake()
    const fixed = always.find(({ when }) => text.includes(when))?.answer
    await answer(response, fixed ?? scripts.shift() ?? [{ text: ['Hello ', 'there.'] }], body, seen.usage)
  }

  async function answer(response: http.ServerResponse, blocks: Block[], body: JsonObject, usage: JsonObject) {
    const [first] = blocks
    if (first !== undefined && 'overloaded' in first)
      return sendJson(response, provider.overloaded.status, provider.overloaded.body)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const writer: Writer = {
      frame: (data, event) =>
        void response.write(`${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`),
    }
    const writing = provider.answer(body, usage)
    writing.begin(writer)
    let calls = 0
    for (const block of blocks) {
      if ('cut' in block) return void setImmediate(() => response.destroy())
      if ('overloaded' in block) {
        writer.frame(...provider.overloaded.frame)
        return void response.end()
      }
      if ('stall' in block) {
        await new Promise<void>((resolve) => {
          stalls.add(resolve)
          response.on('close', resolve)
        })
        continue
      }
      if (response.destroyed) return
      if ('finish' in block) {
        writing.finish(block.finish, writer)
        return void response.end()
      }
      if ('call' in block) calls += 1
      writing.block(block, writer)
    }
    writing.finish(calls > 0 ? 'tool' : 'stop', writer)
    response.end()
  }

  function control(url: URL, text: string, response: http.ServerResponse): void {
    switch (url.pathname) {
      case '/control/script':
        scripts.push(...(JSON.parse(text) as { answers: Block[][] }).answers)
        break
      case '/control/release':
        release()
        break
      case '/control/always':
        always.push(JSON.parse(text) as { when: string; answer: Block[] })
        break
      case '/control/window':
        window = (JSON.parse(text) as { tokens: number }).tokens
        break
      case '/control/reset':
        scripts = []
        window = Infinity
        always = []
        requests = []
        provider.reset()
        release()
        break
      case '/control/requests':
        return sendJson(response, 200, requests)
      case '/control/wait': {
        const wanted = Number(url.searchParams.get('requests'))
        const check = () => {
          if (requests.length >= wanted) sendJson(response, 200, requests)
          else waiters.push(check)
        }
        return check()
      }
      default:
        return sendJson(response, 404, {})
    }
    sendJson(response, 200, {})
  }
}

async function readBody(request: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

function sendJson(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** The same text always gets the same signature, so that a fake can check it without having kept it. */
export function signatureOf(text: string): string {
  return `sig_${createHash('sha256').update(`secret of the provider ${text}`).digest('base64url')}`
}

export function refuseUnknown(object: JsonObject, known: readonly string[], refuse: (name: string) => Refusal): void {
  for (const name of Object.keys(object)) if (!known.includes(name)) throw refuse(name)
}

/** Refuses an earlier call whose name no tool can have, or whose arguments are no object. `input` is parsed. */
export function checkCall(where: string, name: unknown, input: unknown): void {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(name)))
    throw new Refusal(`${where}.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
  if (input === null || typeof input !== 'object' || Array.isArray(input))
    throw new Refusal(`${where}.input: Input should be a valid dictionary`)
}

const marks: Record<string, string> = {
  'image/png': '89504e47',
  'image/jpeg': 'ffd8ff',
  'application/pdf': '255044462d',
}

/** Refuses a file whose bytes are not what its type says, and any file for a model that reads only text. */
export function checkFile(model: unknown, mediaType: unknown, data: unknown): void {
  if (String(model).includes('text-only')) throw new Refusal(`${String(model)} does not support image or file input.`)
  const mark = marks[String(mediaType)]
  if (mark === undefined) throw new Refusal(`Unsupported media type: ${String(mediaType)}.`)
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) throw new Refusal('The file is not base64.')
  if (!Buffer.from(data, 'base64').toString('hex').startsWith(mark))
    throw new Refusal(`The file was specified as ${String(mediaType)}, but does not appear to be one.`)
}

export function checkDataUrl(model: unknown, url: unknown): void {
  const found = /^data:([^;,]+);base64,(.*)$/s.exec(String(url))
  if (found === null) throw new Refusal(`Invalid URL: ${String(url).slice(0, 40)}.`)
  checkFile(model, found[1], found[2])
}

/** Real providers cache no shorter prefix than this. */
export const cachedTokensMin = 1024

/** The cache of a provider that needs no marks: it remembers the beginnings of all prompts. */
export class PrefixCache {
  private prefixes = new Set<string>()

  /** `blocks`: everything that the prompt consists of, in order. */
  read(blocks: readonly unknown[]): { tokens: number; cached: number } {
    const hash = createHash('sha256')
    let tokens = 0
    let cached = 0
    const seen: string[] = []
    for (const block of blocks) {
      hash.update(JSON.stringify(block ?? null))
      tokens += tokensOf(block ?? null)
      const key = hash.copy().digest('hex')
      if (this.prefixes.has(key) && tokens >= cachedTokensMin) cached = tokens
      seen.push(key)
    }
    for (const key of seen) this.prefixes.add(key)
    return { tokens, cached }
  }

  reset(): void {
    this.prefixes = new Set()
  }
}

export const tokensOf = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4)
