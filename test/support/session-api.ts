// A client of the session API, over a real socket, and a server to use it with.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type SharedMcpServer, sharedMcpServer } from './shared-mcp-server.ts'
import type { Answer, TestServer, Json } from './test-server.ts'
import { openStream, type SseStream } from './sse.ts'

export type SharedSessionServer = SharedMcpServer & {
  /** The folder that has the working directories of all sessions. */
  workspace: string
  /** Scripts the answers of the model to messages that contain `marker`. */
  script(marker: string, ...answers: Parameters<TestServer['provider']['script']>[0]): Promise<void>
  /** POST /api/chat/stream, for answers that are not a stream. */
  post(body: unknown): Promise<Answer>
}

/** Heartbeats come often, so that short streams have some. Tools that hang fail soon. Commands need no consent. */
const hastySettings = {
  POLYLOG_SESSION_HEARTBEAT_MS: '20',
  POLYLOG_TOOL_TIMEOUT_MS: '400',
  POLYLOG_BASH: 'allow',
}

/** One server with a workspace and the tools of the fake MCP server, for all tests of a file or suite. */
export function sharedSessionServer(settings: Record<string, string> = hastySettings): SharedSessionServer {
  const shared = sharedMcpServer((folder) => ({ POLYLOG_WORKSPACE: join(folder, 'workspace'), ...settings }))
  const { server, folder } = shared
  return {
    ...shared,
    workspace: join(folder, 'workspace'),
    script: (marker, ...answers) => server.provider.script(answers, marker),
    post: (body) => server.call('POST', '/api/chat/stream', { body }),
  }
}

export type Message = Json & { type: string }

export type SessionStream = {
  readonly raw: SseStream
  readonly runId: string
  /** All messages so far, heartbeats included. */
  messages(): Message[]
  /** The first message of this type (that fits), now or later. */
  waitFor(type: string, fits?: (message: Message) => boolean): Promise<Message>
  /** All messages but heartbeats, when the server has ended the stream. */
  toEnd(): Promise<Message[]>
}

/** POST /api/chat/stream; `body` may be just the message. */
export async function say(
  server: TestServer,
  user: string,
  body: string | Json,
  headers: Record<string, string> = {},
): Promise<SessionStream> {
  const fields: Json = typeof body === 'string' ? { message: body } : body
  const raw = await openStream(`${server.polylog.baseUrl}/api/chat/stream`, {
    method: 'POST',
    body: { ...fields, context: { userId: user, ...fields.context } },
    headers,
  })
  if (raw.status !== 200) await raw.ended()
  assert.equal(raw.status, 200, raw.text())
  return sessionStream(raw)
}

/** The same, read to its end. */
export async function sayToEnd(server: TestServer, user: string, body: string | Json): Promise<Message[]> {
  return await (await say(server, user, body)).toEnd()
}

/** Attaches to a run again. The wire has no ids, so it comes from its beginning. */
export async function attach(server: TestServer, user: string, runId: string): Promise<SessionStream> {
  const url = `${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?format=session&userId=${encodeURIComponent(user)}`
  return sessionStream(await openStream(url))
}

export function sessionStream(raw: SseStream): SessionStream {
  const messages = () => raw.frames.map((frame) => frame.json as unknown as Message)
  return {
    raw,
    runId: String(raw.headers['x-run-id']),
    messages,
    async waitFor(type, fits = () => true) {
      const found = await raw.waitFor(({ json }) => {
        const message = json as unknown as Message
        return message.type === type && fits(message)
      })
      return found.json as unknown as Message
    },
    async toEnd() {
      const { cut } = await raw.ended()
      assert.equal(cut, false)
      return withoutHeartbeats(messages())
    },
  }
}

export function withoutHeartbeats(messages: readonly Message[]): Message[] {
  return messages.filter(({ type }) => type !== 'heartbeat')
}

export function typesOf(messages: readonly Message[]): string[] {
  return withoutHeartbeats(messages).map(({ type }) => type)
}

export function textOf(messages: readonly Message[]): string {
  return messages.map((message) => (message.type === 'text' ? String(message.content) : '')).join('')
}

export function agentIdOf(messages: readonly Message[]): string {
  const [first] = messages
  assert.equal(first?.type, 'start')
  return String(first.agentId)
}

/** The id of the confirmation that a `tool_use` says to decide. */
export function confirmationIdOf(use: Message): string {
  const id = /\/v1\/tool-confirmations\/(\S+)/.exec(use.message)?.[1]
  assert.ok(id !== undefined, `no confirmation in ${JSON.stringify(use)}`)
  return id
}

/** The result of the first call, or of the one with this id. */
export function resultOf(messages: readonly Message[], id?: string): Message {
  const found = messages.find(
    (message) => message.type === 'tool_result' && (id === undefined || message.tool_use_id === id),
  )
  assert.ok(found !== undefined, `no result in ${JSON.stringify(messages)}`)
  return found
}

/** What holds for every stream of this wire that ran to its end. */
export function assertWholeStream(messages: readonly Message[]): void {
  assert.equal(messages[0]?.type, 'start')
  assert.equal(messages.at(-1)?.type, 'done')
  assert.equal(messages.filter(({ type }) => type === 'start' || type === 'done').length, 2)
  const open = new Set<string>()
  for (const message of messages) {
    if (message.type === 'tool_use') {
      assert.equal(typeof message.message, 'string')
      assert.ok(!open.has(message.id))
      open.add(message.id)
    }
    if (message.type === 'tool_error') assert.ok(open.has(message.tool_use_id), 'tool_error comes before its result')
    if (message.type === 'tool_result') assert.ok(open.delete(message.tool_use_id), 'a result belongs to a tool_use')
    const at = message.type === 'done' ? message.metadata.timestamp : message.timestamp
    assert.ok(Number.isSafeInteger(at) && at > 1_600_000_000_000, 'times are epoch milliseconds')
  }
  assert.deepEqual([...open], [], 'every tool_use has a result')
}
