// A stand-in for a model provider: OpenAI's chat-completions wire over a real
// socket, in a process of its own. It does what it is told over /control/…, also
// what a healthy provider never does: cuts, stalls, half frames, error statuses.
//
//   POST /control/script    {answers: Action[][], match?, model?}  queued; with `match` only for requests
//                           whose last user message contains that text, with `model` only for that model
//   POST /control/release   ends every stall
//   POST /control/reset     forgets scripts and requests, ends stalls
//   POST /control/renew     as reset, and closes all connections but this one: as if it were started again
//   GET  /control/requests  everything that was asked so far
//   GET  /control/wait?requests=n&closedEarly=m   the same, as soon as there are that many
//
// Without a script it says hello, or "Done: …" after a tool result. The model
// `bench-<chunks>-<delayMs>` streams that many chunks with that pacing, cheaply.

import * as http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { streamBenchAnswer } from './openai-bench.ts'
import type { Action, FakeToolCall, SeenRequest } from './openai-script.ts'

type Script = { match: string | undefined; model: string | undefined; answers: Action[][] }

let scripts: Script[] = []
let requests: SeenRequest[] = []
let stalls = new Set<() => void>()
let waiters: (() => void)[] = []
const connections = new WeakMap<object, number>()
const sockets = new Set<Socket>()
let connectionCount = 0

const server = http.createServer((request, response) => {
  void handle(request, response).catch((error: unknown) => {
    process.stderr.write(`fake provider: ${String(error)}\n`)
    response.destroy()
  })
})
// As real providers do; with the 5 seconds of Node, a busy machine sends a request on a connection that is just being closed.
server.keepAliveTimeout = 60_000
server.on('connection', (socket) => {
  connectionCount += 1
  connections.set(socket, connectionCount)
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  socket.setNoDelay(true)
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
// The parent holds the other end of stdin: when it is gone, so are we.
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()

async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const body = await readBody(request)
  if (url.pathname.startsWith('/control/')) {
    control(url, body, response)
    return
  }
  if (url.pathname.endsWith('/models')) {
    sendJson(response, 200, { object: 'list', data: [{ id: 'fake', object: 'model' }] })
    return
  }
  // Other providers' routes have no answer of their own; a script may give their bytes.
  if (!url.pathname.endsWith('/chat/completions') && scripts.length === 0) {
    sendJson(response, 404, { error: { message: `No route ${url.pathname}` } })
    return
  }
  const parsed = JSON.parse(body) as SeenRequest['body']
  const bench = /^bench-(\d+)-(\d+)$/.exec(parsed.model ?? '')
  if (bench !== null) {
    streamBenchAnswer(response, Number(bench[1]), Number(bench[2]))
    return
  }
  const { authorization, ...headers } = request.headers
  const seen: SeenRequest = {
    path: url.pathname,
    body: parsed,
    headers: headers as Record<string, string>,
    hasAuthorization: authorization !== undefined,
    closedEarly: false,
    answered: false,
    flooded: 0,
    connection: connections.get(request.socket) ?? 0,
  }
  requests.push(seen)
  response.on('close', () => {
    if (!seen.answered) seen.closedEarly = true
    wake()
  })
  wake()
  const problem = contentProblem(parsed)
  if (problem !== null) {
    seen.answered = true
    sendJson(response, 400, {
      error: { message: problem, type: 'invalid_request_error', param: 'messages', code: null },
    })
    return
  }
  await answer(response, nextAnswer(parsed), seen)
}

/** What the real API refuses in the content of messages; null if nothing. */
function contentProblem({ model, messages = [] }: SeenRequest['body']): string | null {
  for (const { role, content } of messages) {
    if (!Array.isArray(content)) continue
    for (const part of content as { type: string; image_url?: { url: string }; file?: { file_data: string } }[]) {
      if (part.type === 'text') continue
      if (role !== 'user' || (part.type !== 'image_url' && part.type !== 'file'))
        return `Invalid value: '${part.type}' in a message of role ${role}.`
      if (String(model).includes('text-only')) return 'This model does not support image or file input.'
      const url = part.type === 'image_url' ? part.image_url?.url : part.file?.file_data
      if (!/^data:(?:image\/(?:png|jpeg|gif|webp)|application\/pdf);base64,[A-Za-z0-9+/]+=*$/.test(url ?? ''))
        return 'Invalid image or file: expected a data URL in base64.'
    }
  }
  return null
}

function nextAnswer(body: SeenRequest['body']): Action[] {
  const messages = body.messages ?? []
  const lastUser = textOf(messages.findLast((message) => message.role === 'user')?.content)
  const fitting = scripts.filter((script) => script.model === undefined || script.model === body.model)
  const matching =
    fitting.find((script) => script.match !== undefined && lastUser.includes(script.match)) ??
    fitting.find((script) => script.match === undefined)
  const scripted = matching?.answers.shift()
  scripts = scripts.filter((script) => script.answers.length > 0)
  if (scripted !== undefined) return scripted
  const last = messages.at(-1)
  if (last?.role === 'tool') return [{ text: ['Done: ', textOf(last.content)] }, { finish: 'stop' }]
  return [{ text: ['Hello ', 'from ', 'the ', 'fake ', 'provider.'] }, { finish: 'stop' }]
}

async function answer(response: http.ServerResponse, actions: Action[], seen: SeenRequest): Promise<void> {
  for (const action of actions) {
    if (response.destroyed) return
    if ('status' in action) {
      const text = typeof action.body === 'string' ? action.body : JSON.stringify(action.body ?? {})
      seen.answered = true
      response.writeHead(action.status, { 'content-type': 'application/json', ...action.headers })
      response.end(text)
      return
    }
    if ('json' in action) {
      seen.answered = true
      sendJson(response, 200, action.json)
      return
    }
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
      response.flushHeaders()
    }
    await perform(response, action, seen)
  }
  // A script that just stops leaves the connection open, like a provider that hangs.
}

async function perform(response: http.ServerResponse, action: Action, seen: SeenRequest): Promise<void> {
  if ('text' in action) {
    for (const content of [action.text].flat()) send(response, { content })
  } else if ('reasoning' in action) {
    for (const text of [action.reasoning].flat()) send(response, { [action.field ?? 'reasoning_content']: text })
  } else if ('toolCalls' in action) {
    for (const delta of toolCallDeltas(action.toolCalls)) send(response, { tool_calls: [delta] })
  } else if ('finish' in action) {
    chunk(response, { choices: [{ index: 0, delta: {}, finish_reason: action.finish }] })
    if (action.usage !== false) chunk(response, { choices: [], usage: action.usage ?? defaultUsage })
    seen.answered = true
    response.end(action.done === false ? undefined : 'data: [DONE]\n\n')
  } else if ('usage' in action) {
    chunk(response, { choices: [], usage: action.usage })
  } else if ('done' in action) {
    response.write('data: [DONE]\n\n')
  } else if ('cut' in action) {
    seen.answered = true
    // What was written must arrive first: a reset may overtake data that is still in a buffer.
    await new Promise((resolve) => setTimeout(resolve, 20))
    response.socket?.destroy()
  } else if ('end' in action) {
    seen.answered = true
    response.end()
  } else if ('stall' in action) {
    await new Promise<void>((resolve) => {
      stalls.add(resolve)
      response.on('close', resolve)
    })
  } else if ('halfJson' in action) {
    response.write('data: {"id":"chatcmpl-fake","choices":[{"index":0,"delta":{"conte\n\n')
  } else if ('error' in action) {
    chunk(response, { error: action.error })
  } else if ('delayMs' in action) {
    await new Promise((resolve) => setTimeout(resolve, action.delayMs))
  } else if ('bytesBase64' in action) {
    for (const bytes of action.bytesBase64) {
      response.write(Buffer.from(bytes, 'base64'))
      // A turn of the event loop, so that each write has a chance to travel alone.
      await new Promise((resolve) => setImmediate(resolve))
    }
  } else if ('flood' in action) {
    for (let written = 0; written < action.flood.count && !response.destroyed; written += 1) {
      const more = send(response, { content: action.flood.text })
      seen.flooded = written + 1
      if (!more) await new Promise<void>((resolve) => drained(response, resolve))
    }
  }
}

function drained(response: http.ServerResponse, resolve: () => void): void {
  const done = (): void => {
    response.off('drain', done)
    response.off('close', done)
    resolve()
  }
  response.on('drain', done)
  response.on('close', done)
}

function toolCallDeltas(calls: FakeToolCall[]): unknown[] {
  const opening: unknown[] = []
  const rounds: unknown[][] = []
  calls.forEach((call, position) => {
    const index = call.index ?? position
    const text = call.arguments ?? '{}'
    const size = call.pieces ?? text.length
    opening.push({
      index,
      ...(call.id === null ? {} : { id: call.id ?? `call_${position + 1}` }),
      type: 'function',
      function: { ...(call.name === undefined ? {} : { name: call.name }), arguments: '' },
    })
    for (let start = 0, round = 0; start < text.length; start += size, round += 1) {
      ;(rounds[round] ??= []).push({ index, function: { arguments: text.slice(start, start + size) } })
    }
  })
  return [...opening, ...rounds.flat()]
}

const defaultUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

function send(response: http.ServerResponse, delta: Record<string, unknown>): boolean {
  return chunk(response, { choices: [{ index: 0, delta, finish_reason: null }] })
}

function chunk(response: http.ServerResponse, body: Record<string, unknown>): boolean {
  const whole = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 1, model: 'fake', ...body }
  return response.write(`data: ${JSON.stringify(whole)}\n\n`)
}

function control(url: URL, body: string, response: http.ServerResponse): void {
  switch (url.pathname) {
    case '/control/script': {
      const { answers, match, model } = JSON.parse(body) as { answers: Action[][]; match?: string; model?: string }
      scripts.push({ answers, match, model })
      sendJson(response, 200, {})
      return
    }
    case '/control/reset':
      forget()
      sendJson(response, 200, {})
      return
    case '/control/renew':
      forget()
      connectionCount = 0
      for (const socket of sockets) if (socket !== response.socket) socket.destroy()
      sendJson(response, 200, {})
      return
    case '/control/release':
      releaseAll()
      sendJson(response, 200, {})
      return
    case '/control/requests':
      sendJson(response, 200, requests)
      return
    case '/control/wait': {
      const wantedRequests = Number(url.searchParams.get('requests') ?? 0)
      const wantedClosed = Number(url.searchParams.get('closedEarly') ?? 0)
      const check = (): void => {
        const closed = requests.filter((seen) => seen.closedEarly).length
        if (requests.length >= wantedRequests && closed >= wantedClosed) sendJson(response, 200, requests)
        else if (!response.destroyed) waiters.push(check)
      }
      check()
      return
    }
    default:
      sendJson(response, 404, { error: 'no such control' })
  }
}

function forget(): void {
  scripts = []
  requests = []
  releaseAll()
}

function wake(): void {
  const waking = waiters
  waiters = []
  for (const check of waking) check()
}

function releaseAll(): void {
  const released = stalls
  stalls = new Set()
  for (const resolve of released) resolve()
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map((part: { text?: string }) => part.text ?? '').join('')
  return ''
}

async function readBody(request: http.IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString('utf8')
}

function sendJson(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
