// A stand-in for an OpenClaw gateway: version 4 of its WebSocket protocol and its chat
// completions, over real sockets, in a process of its own. The shapes are those that the real
// gateway 2026.9.6 sent. It does what it is told over /control/…, also what a healthy gateway
// never does.
//
//   POST /control/script    {match, actions}  what a run whose message contains `match` does
//   POST /control/behave    GatewayBehaviour, until the next call
//   POST /control/release   ends every hold        POST /control/drop     destroys all sockets
//   POST /control/restart   Restart                GET  /control/state    GatewayState

import { randomUUID } from 'node:crypto'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { GatewayAction, GatewayBehaviour, GatewayState, Restart } from './openclaw-script.ts'
import { acceptWebSocket, type ServerSocket } from './web-socket-server.ts'

const token = process.env['OPENCLAW_FAKE_TOKEN'] ?? 'gateway-token'
const tickMs = Number(process.env['OPENCLAW_FAKE_TICK_MS'] ?? 1_000)

// oxlint-disable-next-line typescript/no-explicit-any -- whatever a client sent, and what it is answered
type Fields = Record<string, any>
type Client = {
  socket: ServerSocket
  ready: boolean
  frames: number
  sessions: Set<string>
  tools: Set<string>
  subscribed: boolean
}
type Session = { messages: Fields[] }
type Run = {
  runId: string
  sessionKey: string
  seq: number
  status: 'running' | 'ok' | 'error'
  error: string
  boot: string
  aborted: boolean
  said: string[]
}
type Approval = { id: string; request: Fields; expiresAtMs: number; decide(decision: string): void }

const scripts: { match: string; actions: GatewayAction[] }[] = []
let behaviour: GatewayBehaviour = {}
let bootId = randomUUID()
let releases = new Set<() => void>()
let losing = 0
let doubling = 0
const clients = new Set<Client>()
const sessions = new Map<string, Session>()
const runs = new Map<string, Run>()
/** Decided ones stay known, as on the real gateway. */
const approvals = new Map<string, Approval & { decision?: string }>()
const state: GatewayState = {
  boots: 1,
  connections: 0,
  open: 0,
  started: [],
  sends: 0,
  resolved: [],
  resolveRequests: 0,
  aborted: [],
  completions: [],
  historyReads: 0,
  badTokens: 0,
}

const server = http.createServer((request, response) => {
  void handle(request, response).catch((error: unknown) => {
    process.stderr.write(`fake gateway: ${String(error)}\n`)
    response.destroy()
  })
})
server.on('upgrade', (request, socket) => {
  if (behaviour.upgradeStatus !== undefined) {
    socket.end(`HTTP/1.1 ${behaviour.upgradeStatus} No\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n`)
    return
  }
  state.connections += 1
  const client: Client = {
    ready: false,
    frames: 0,
    sessions: new Set(),
    tools: new Set(),
    subscribed: false,
    socket: acceptWebSocket(request, socket, {
      message: (text) => void receive(client, JSON.parse(text) as Fields),
      closed: () => void clients.delete(client),
    }),
  }
  clients.add(client)
  if (behaviour.silent) return
  write(client, { type: 'event', event: 'connect.challenge', payload: { nonce: randomUUID(), ts: Date.now() } })
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()
setInterval(tick, tickMs).unref()

function tick(): void {
  broadcast('tick', { ts: Date.now() })
}

function write(client: Client, frame: Fields): void {
  client.socket.send(JSON.stringify(frame))
}

function broadcast(event: string, payload: Fields, wants: (client: Client) => boolean = () => true): void {
  const lost = losing > 0 && event !== 'tick'
  const twice = doubling > 0 && event !== 'tick'
  if (lost) losing -= 1
  if (twice) doubling -= 1
  for (const client of clients) {
    if (!client.ready || !wants(client)) continue
    client.frames += 1
    const frame = { type: 'event', event, payload, seq: client.frames }
    if (lost) continue
    write(client, frame)
    if (twice) write(client, frame)
  }
}

async function receive(client: Client, { id, method, params }: Fields): Promise<void> {
  const answer = (payload: unknown) => write(client, { type: 'res', id, ok: true, payload })
  const refuse = (code: string, message: string) =>
    write(client, { type: 'res', id, ok: false, error: { code, message } })
  if (!client.ready) {
    connect(client, method, params, answer, refuse)
    return
  }
  const key = canonical(params.sessionKey ?? params.key ?? '')
  switch (method) {
    case 'sessions.subscribe':
      client.subscribed = true
      answer({ subscribed: true })
      return
    case 'sessions.messages.subscribe':
      client.sessions.add(key)
      answer({ subscribed: true, key })
      return
    case 'sessions.messages.unsubscribe':
      client.sessions.delete(key)
      answer({ subscribed: false, key })
      return
    case 'chat.send':
      send(client, key, params, answer, refuse)
      return
    case 'chat.history':
      state.historyReads += 1
      answer(historyOf(params.sessionKey, key))
      return
    case 'agent.wait': {
      const run = runs.get(params.runId)
      if (run === undefined || run.status === 'running') answer({ runId: params.runId, status: 'timeout' })
      else if (run.status === 'error') answer({ runId: run.runId, status: 'error', error: run.error })
      else
        answer({
          runId: run.runId,
          status: 'ok',
          terminalReply: { disposition: 'visible', text: run.said.at(-1) ?? '' },
        })
      return
    }
    case 'chat.abort': {
      if (behaviour.ignoreAbort) return
      const run = runs.get(params.runId)
      const found = run?.status === 'running'
      if (found) {
        state.aborted.push(params.runId)
        run.aborted = true
        finish(run, 'error', 'aborted')
        broadcast('chat', { ...chatOf(run), state: 'aborted' })
        releaseAll()
      }
      answer({ ok: true, aborted: found, runIds: found ? [params.runId] : [] })
      return
    }
    case 'exec.approval.list':
      answer([...approvals.values()].filter(({ decision }) => decision === undefined).map(approvalOf))
      return
    case 'exec.approval.resolve':
      resolve(params.id, params.decision, answer, refuse)
      return
    default:
      refuse('INVALID_REQUEST', `unknown method: ${method}`)
  }
}

function connect(
  client: Client,
  method: string,
  params: Fields,
  answer: (payload: unknown) => void,
  refuse: (code: string, message: string) => void,
): void {
  if (behaviour.closeBeforeHello) {
    client.socket.close()
    return
  }
  if (behaviour.connectError !== undefined) {
    refuse(behaviour.connectError.code, behaviour.connectError.message)
    return
  }
  const wellFormed = method === 'connect' && params.minProtocol <= 4 && params.maxProtocol >= 4
  if (!wellFormed || params.client?.id !== 'gateway-client' || params.role !== 'operator') {
    refuse('INVALID_REQUEST', 'invalid connect params')
    return
  }
  if (params.auth?.token !== token) {
    state.badTokens += 1
    refuse('UNAUTHORIZED', 'unauthorized: gateway token mismatch')
    return
  }
  client.ready = true
  answer({
    type: 'hello-ok',
    protocol: 4,
    server: { version: 'fake', bootId, connId: randomUUID() },
    features: { methods: [], events: [] },
    snapshot: {},
    auth: { role: 'operator', scopes: behaviour.scopes ?? params.scopes },
    policy: { maxPayload: 26_214_400, maxBufferedBytes: 52_428_800, tickIntervalMs: tickMs },
  })
}

function send(
  client: Client,
  sessionKey: string,
  params: Fields,
  answer: (payload: unknown) => void,
  refuse: (code: string, message: string) => void,
): void {
  state.sends += 1
  if (behaviour.refuseSend !== undefined) {
    refuse('INVALID_REQUEST', behaviour.refuseSend)
    return
  }
  if (behaviour.dropSend === 'restart') {
    behaviour = {}
    restart({})
    return
  }
  if (behaviour.dropSend === 'before') {
    behaviour = {}
    client.socket.destroy()
    return
  }
  const runId = String(params.idempotencyKey)
  const known = runs.get(runId)
  client.tools.add(runId)
  if (known !== undefined) {
    answer({ runId, status: known.status === 'running' ? 'in_flight' : known.status })
    return
  }
  const message = String(params.message)
  state.started.push({ runId, sessionKey, message })
  const run: Run = {
    runId,
    sessionKey,
    seq: 0,
    status: 'running',
    error: '',
    boot: bootId,
    aborted: false,
    said: [],
  }
  runs.set(runId, run)
  sessionOf(sessionKey).messages.push({ role: 'user', content: message, idempotencyKey: `${runId}:user` })
  const index = scripts.findIndex(({ match }) => message.includes(match))
  const [script] = index === -1 ? [] : scripts.splice(index, 1)
  if (behaviour.dropSend === 'after') {
    behaviour = {}
    client.socket.destroy()
  } else answer({ runId, status: 'started' })
  void play(run, script?.actions ?? [{ text: ['Hello ', 'from the gateway.'] }])
}

async function play(run: Run, actions: GatewayAction[]): Promise<void> {
  // What an earlier script left over does not concern this run.
  losing = 0
  doubling = 0
  agent(run, 'lifecycle', { phase: 'start', startedAt: Date.now() })
  let message = 0
  for (const action of actions) {
    if (run.aborted || run.boot !== bootId) return
    if ('text' in action) {
      message += 1
      const itemId = `${run.runId}:${message}`
      let text = ''
      for (const piece of [action.text].flat()) {
        text += piece
        agent(run, 'assistant', { text: text.trimEnd(), delta: piece, itemId })
      }
      run.said.push(text.trim())
      remember(run, { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' })
    } else if ('reasoning' in action) {
      let text = ''
      for (const piece of [action.reasoning].flat()) {
        text += piece
        agent(run, 'thinking', { text, delta: piece })
      }
    } else if ('call' in action) {
      const { id, name, args } = action.call
      markCalled(run, { type: 'toolCall', id, name, arguments: args })
      agent(run, 'tool', { phase: 'start', name, toolCallId: id, args })
    } else if ('progress' in action) {
      const { id, text } = action.progress
      agent(run, 'tool', { phase: 'update', toolCallId: id, partialResult: { content: [{ type: 'text', text }] } })
    } else if ('result' in action) {
      toolResult(run, action.result)
    } else if ('approval' in action) {
      const { callId, text } = action.approval
      const decision = await ask(run, action.approval)
      if (run.aborted || run.boot !== bootId) return
      const denied = { id: callId, text: 'exec denied: the approval was refused', isError: true }
      toolResult(run, decision === 'deny' ? denied : { id: callId, text })
    } else if ('hold' in action) {
      await new Promise<void>((resolve) => releases.add(resolve))
    } else if ('untilFollowed' in action) {
      // A client reads the history after it has subscribed.
      const reads = state.historyReads
      const isFollowed = () => [...clients].some((client) => client.sessions.has(run.sessionKey))
      while (state.historyReads === reads || !isFollowed()) await pause(5)
    } else if ('drop' in action) {
      // What was written must arrive first.
      await pause(20)
      for (const client of clients) client.socket.destroy()
      clients.clear()
    } else if ('lose' in action) {
      losing = action.lose
    } else if ('duplicate' in action) {
      doubling = action.duplicate
    } else if ('raw' in action) {
      for (const client of clients) client.socket.send(action.raw)
    } else if ('tick' in action) {
      tick()
    } else if ('error' in action) {
      finish(run, 'error', action.error)
      agent(run, 'usage', { outputTokens: 2, inputTokens: 11 })
      agent(run, 'lifecycle', { phase: 'error', error: action.error })
      broadcast('chat', { ...chatOf(run), state: 'error', errorMessage: action.error, errorKind: 'unknown' })
      return
    } else if ('endWithoutFinal' in action) {
      finish(run, 'ok')
      agent(run, 'lifecycle', { phase: 'end' })
      return
    } else if ('silentEnd' in action) {
      finish(run, 'ok')
      return
    } else if ('final' in action) {
      run.said.push(action.final)
    } else if ('restart' in action) {
      restart(action.restart)
      return
    }
  }
  if (run.aborted || run.boot !== bootId) return
  finish(run, 'ok')
  agent(run, 'usage', { outputTokens: 7, inputTokens: 11 })
  agent(run, 'lifecycle', { phase: 'end', endedAt: Date.now() })
  const content = [{ type: 'text', text: run.said.join('\n\n') }]
  broadcast('chat', { ...chatOf(run), state: 'final', stopReason: 'stop', message: { role: 'assistant', content } })
}

/** The chat events of the real gateway carry the number of the last agent event. */
function chatOf(run: Run): Fields {
  return { runId: run.runId, sessionKey: run.sessionKey, agentId: 'main', seq: run.seq }
}

function finish(run: Run, status: 'ok' | 'error', error = ''): void {
  run.status = status
  run.error = error
}

function agent(run: Run, stream: string, data: Fields): void {
  // The real gateway merges text events, and the numbers of the merged ones are not sent.
  run.seq += stream === 'assistant' ? 2 : 1
  const payload = { runId: run.runId, seq: run.seq, stream, ts: Date.now(), sessionKey: run.sessionKey, data }
  if (stream !== 'tool') {
    broadcast('agent', payload)
    return
  }
  // Events about tools go to the connection that started the run; others get them under another name.
  broadcast('agent', payload, ({ tools }) => tools.has(run.runId))
  broadcast('session.tool', payload, ({ tools, subscribed }) => subscribed && !tools.has(run.runId))
}

function toolResult(run: Run, { id, text, isError = false }: { id: string; text: string; isError?: boolean }): void {
  const content = [{ type: 'text', text }]
  agent(run, 'tool', { phase: 'result', toolCallId: id, isError, result: { content } })
  remember(run, { role: 'toolResult', toolCallId: id, content, isError })
}

function ask(run: Run, wanted: Extract<GatewayAction, { approval: unknown }>['approval']): Promise<string> {
  return new Promise((resolve) => {
    const approval: Approval = {
      id: wanted.id,
      request: {
        command: wanted.command,
        cwd: '/work',
        warningText: null,
        sessionKey: run.sessionKey,
        runId: run.runId,
        toolCallId: wanted.callId,
        allowedDecisions: ['allow-once', 'deny'],
      },
      expiresAtMs: wanted.expiresAtMs ?? Date.now() + 1_800_000,
      decide: resolve,
    }
    approvals.set(wanted.id, approval)
    broadcast('exec.approval.requested', approvalOf(approval))
    agent(run, 'lifecycle', { phase: 'waiting-approval', approvalId: wanted.id, toolCallId: wanted.callId })
  })
}

function approvalOf({ id, request, expiresAtMs }: Approval): Fields {
  return { approvalKind: 'exec', id, request, createdAtMs: Date.now(), expiresAtMs }
}

function resolve(
  id: string,
  decision: string,
  answer: (payload: unknown) => void,
  refuse: (code: string, message: string) => void,
): void {
  state.resolveRequests += 1
  const approval = approvals.get(id)
  if (approval === undefined || (approval.decision !== undefined && approval.decision !== decision)) {
    refuse('INVALID_REQUEST', 'unknown or expired approval id')
    return
  }
  if (approval.decision === undefined) {
    approval.decision = decision
    state.resolved.push({ id, decision })
    broadcast('exec.approval.resolved', { id, decision, request: approval.request })
    approval.decide(decision)
  }
  answer({ ok: true })
}

function historyOf(asked: string, key: string): Fields {
  const active = [...runs.values()].filter((run) => run.sessionKey === key && run.status === 'running')
  const [run] = active
  return {
    sessionKey: asked,
    messages: sessions.get(key)?.messages ?? [],
    pendingInputs: { items: [], total: 0 },
    sessionInfo: { key, hasActiveRun: active.length > 0, activeRunIds: active.map(({ runId }) => runId) },
    ...(run === undefined ? {} : { inFlightRun: { runId: run.runId, text: run.said.join('\n\n') } }),
  }
}

function remember(run: Run, message: Fields): void {
  sessionOf(run.sessionKey).messages.push({
    ...message,
    __openclaw: { runId: run.runId, recordTimestampMs: Date.now() },
  })
}

/** The text before a call and the call are one message, which the history shows as two. */
function markCalled(run: Run, call: Fields): void {
  const { messages } = sessionOf(run.sessionKey)
  const last = messages.at(-1)
  if (last?.role === 'assistant' && last.__openclaw?.runId === run.runId) delete last.stopReason
  remember(run, { role: 'assistant', content: [call], stopReason: 'toolUse' })
}

function sessionOf(key: string): Session {
  let session = sessions.get(key)
  if (session === undefined) sessions.set(key, (session = { messages: [] }))
  return session
}

function canonical(key: string): string {
  return `agent:main:${key.toLowerCase()}`
}

function restart({ sessions: forget = false }: Restart): void {
  bootId = randomUUID()
  state.boots += 1
  broadcast('shutdown', { reason: 'restart' })
  for (const client of clients) client.socket.destroy()
  clients.clear()
  runs.clear()
  approvals.clear()
  releaseAll()
  if (forget) sessions.clear()
}

function releaseAll(): void {
  const released = releases
  releases = new Set()
  for (const release of released) release()
}

async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const path = new URL(request.url ?? '/', 'http://fake').pathname
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const text = Buffer.concat(pieces).toString('utf8')
  const body = (text === '' ? {} : JSON.parse(text)) as Fields
  const reply = (status: number, value: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(value))
  }
  if (path === '/control/script') scripts.push({ match: body.match, actions: body.actions })
  else if (path === '/control/behave') behaviour = body
  else if (path === '/control/release') releaseAll()
  else if (path === '/control/drop') for (const client of clients) client.socket.destroy()
  else if (path === '/control/restart') restart(body)
  else if (path !== '/control/state') {
    await completions(path, request, body, response, reply)
    return
  }
  reply(200, { ...state, open: clients.size })
}

async function completions(
  path: string,
  request: http.IncomingMessage,
  body: Fields,
  response: http.ServerResponse,
  reply: (status: number, value: unknown) => void,
): Promise<void> {
  if (!behaviour.chatCompletions) return reply(404, { error: { message: 'Not Found' } })
  if (request.headers.authorization !== `Bearer ${token}`) return reply(401, { error: { message: 'Unauthorized' } })
  if (path === '/v1/models') return reply(200, { object: 'list', data: [{ id: 'openclaw' }] })
  const message = String(body.messages.at(-1).content)
  const seen = { user: String(body.user), message, closedEarly: false }
  state.completions.push(seen)
  response.on('close', () => (seen.closedEarly = !response.writableEnded))
  const index = scripts.findIndex(({ match }) => message.includes(match))
  const [script] = index === -1 ? [] : scripts.splice(index, 1)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = (value: Fields) => response.write(`data: ${JSON.stringify(value)}\n\n`)
  for (const action of script?.actions ?? [{ text: ['Hello ', 'over HTTP.'] }]) {
    if ('text' in action)
      for (const content of [action.text].flat()) chunk({ choices: [{ index: 0, delta: { content } }] })
    else if ('error' in action) chunk({ error: { message: action.error, type: 'server_error' } })
    else if ('drop' in action) {
      await pause(20)
      response.destroy()
      return
    } else if ('hold' in action) {
      await new Promise<void>((release) => {
        releases.add(release)
        response.on('close', release)
      })
    }
  }
  if (response.destroyed) return
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  response.end('data: [DONE]\n\n')
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}
