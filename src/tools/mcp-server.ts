// One configured MCP server. It reconnects when its connection is lost:
//
//   closed ── connect ──▶ open ── the process or the session dies ──▶ closed
//
// A call on a closed server makes one attempt to connect before anything is sent. If the
// list of tools has changed, because the server says so or because a new connection finds
// another one, `onToolsChanged` gets the new list.
//
// A call that may have arrived is never sent again: it fails with an unknown outcome
// (`tool_failed` with `details.outcome`). `tool_unavailable` always means that the server
// has done nothing.

import { isDeepStrictEqual } from 'node:util'
import {
  type CallToolResult,
  Client,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  specTypeSchemas,
  type Tool as McpTool,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { withoutActivity } from '../kit/activity.ts'
import type { Clock } from '../kit/clock.ts'
import { issuesSentence } from '../kit/standard-schema.ts'
import { excerpt } from './excerpt.ts'
import { readableAnswer } from './mcp-answer.ts'
import { toCallFailure, toReason } from './mcp-failure.ts'
import type { McpServerConfig } from './mcp-config.ts'
import { type Environment, type McpTransport, messageBytesMax, openTransport } from './mcp-transport.ts'
import type { ToolContext } from './tool.ts'

/** The methods of a pino logger that we use. */
export type McpLog = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
}

export type McpServerOptions = {
  clock: Clock
  log: McpLog
  environment: Environment
  callTimeoutMs: number
  /** Gets the whole list each time it differs from the one that was known. */
  onToolsChanged(list: ToolList): void
}

/** What a server lists. A tool whose definition is not valid is named with the reason; `excess` says why tools are missing. */
export type ToolList = { tools: McpTool[]; invalid: { name: string; reason: string }[]; excess?: string }

export type McpServer = {
  readonly name: string
  /** Opens the first connection and reads all pages of the list. Throws `tool_unavailable` with the reason. */
  listTools(): Promise<ToolList>
  call(tool: McpTool, input: JsonValue, context: ToolContext): Promise<CallToolResult>
  close(): Promise<void>
}

type Connection = {
  client: Client
  link: McpTransport
  isOpen: boolean
  calls: number
  list: ToolList
  /** The server has said that its list changed, and we have not read it since. */
  isListStale: boolean
  isRereading: boolean
}

/**
 * The time limit for connecting and listing the tools together. Programs that are downloaded when they are started
 * (`npx`, `uvx`, a container) can take this long.
 */
const connectTimeoutMs = 60_000
/** How long the start-up, or a call, waits for a connection. The attempt goes on after that. */
export const connectWaitMs = 10_000
/** A server that changes several tools sends a notification for each of them; they are answered by one read. */
const rereadDelayMs = 500
const listenAgainMs = 1_000
const listenRetryMs = 60_000

/** Disables the library's own timeout (this is the longest delay of a timer); our clock enforces the time limits. */
const never = 0x7fffffff

/** Only the first tools of a server are used, because every tool is part of every prompt. */
const toolsMax = 500
const progressCharsMax = 1_000
/** The library reads this many pages, each with up to `messageBytesMax`, and then throws away what it has read. We read longer lists ourselves. */
const libraryPagesMax = 10
/** Enough for `toolsMax` tools on pages of ten, with room for small ones. */
const pagesMax = 100
/** All pages together, written as JSON. */
const listCharsMax = libraryPagesMax * messageBytesMax

/** How long closing waits for the server to confirm the end of the session. */
const endSessionTimeoutMs = 1_000

export function createMcpServer(name: string, config: McpServerConfig, options: McpServerOptions): McpServer {
  const { clock, log, environment, callTimeoutMs } = options
  let known: ToolList | null = null
  let current: Connection | null = null
  let opening: Promise<Connection> | null = null
  let closed = false
  const shutdown = new AbortController()
  const retired = new Set<Connection>()
  const closing = new Set<Promise<unknown>>()

  async function open(): Promise<Connection> {
    const limit = timeLimit(clock, connectTimeoutMs)
    const signal = AbortSignal.any([limit.signal, shutdown.signal])
    try {
      // Over HTTP we negotiate the newest protocol version at once. A child process would have to be started twice for the
      // negotiation, so we try the legacy handshake first and negotiate only if the server refuses it.
      if ('url' in config) return await handshake('auto', signal)
      return await handshake('legacy', signal).catch((error: unknown) => {
        if (error instanceof ProtocolError) return handshake('auto', signal)
        throw error
      })
    } catch (error) {
      throw new AppError('tool_unavailable', toReason(signal.aborted ? signal.reason : error), { cause: error })
    } finally {
      limit.cancel()
    }
  }

  async function handshake(mode: 'legacy' | 'auto', signal: AbortSignal): Promise<Connection> {
    const link = openTransport(config, environment)
    // Input requests of the server during a call are not supported.
    const client = new Client(
      { name: 'polylog', version: '1' },
      { versionNegotiation: { mode }, inputRequired: { autoFulfill: false }, listMaxPages: libraryPagesMax },
    )
    const connection: Connection = {
      client,
      link,
      isOpen: true,
      calls: 0,
      list: { tools: [], invalid: [] },
      isListStale: false,
      isRereading: false,
    }
    client.onclose = () => {
      connection.isOpen = false
      if (current === connection && !closed)
        log.warn({ server: name, stderr: link.stderrTail() }, 'An MCP server closed its connection.')
    }
    try {
      await abortable(client.connect(link.transport, { signal, timeout: never }), signal)
      const deliver = link.transport.onmessage
      link.transport.onmessage = (message, extra) => deliver?.(readableAnswer(message), extra)
      client.setNotificationHandler('notifications/tools/list_changed', () => {
        void reread(connection)
      })
      connection.list = await readTools(client, signal)
      if (client.getProtocolEra() === 'modern' && client.getServerCapabilities()?.tools?.listChanged === true) {
        void listen(connection)
      }
      return connection
    } catch (error) {
      if (!closed)
        log.warn({ server: name, stderr: link.stderrTail(), err: error }, 'An MCP server could not be connected.')
      discard(connection)
      throw error
    }
  }

  async function readTools(client: Client, signal: AbortSignal): Promise<ToolList> {
    const options = { signal, timeout: never, cacheMode: 'refresh' } as const
    const reading = client.listTools(undefined, options).then(
      ({ tools }): ToolList => ({ tools, invalid: [] }),
      (error: unknown) => {
        if (error instanceof SdkError && readOurselves.has(error.code)) return readEachTool(client, options)
        throw error
      },
    )
    const list = await abortable(reading, signal)
    const excess = list.tools.length > toolsMax ? `It lists more than ${toolsMax} tools.` : list.excess
    const tools = list.tools.slice(0, toolsMax)
    if (excess !== undefined) {
      log.warn({ server: name, excess, used: tools.length }, 'An MCP server lists too many tools.')
    }
    return {
      tools,
      invalid: list.invalid.slice(0, toolsMax),
      ...(excess === undefined ? {} : { excess: `${excess} Only the first ${tools.length} tools are used.` }),
    }
  }

  /** If the list cannot be read, the one that is known stays in use. */
  async function reread(connection: Connection): Promise<void> {
    connection.isListStale = true
    if (connection.isRereading) return
    connection.isRereading = true
    while (connection.isListStale) {
      await pause(rereadDelayMs)
      // A client that is closed would return an empty list.
      if (!connection.isOpen) return
      connection.isListStale = false
      const limit = timeLimit(clock, connectTimeoutMs)
      try {
        connection.list = await readTools(connection.client, limit.signal)
        if (current === connection && connection.isOpen) setTools(connection.list)
      } catch (error) {
        if (connection.isOpen)
          log.warn({ server: name, err: error }, 'An MCP server changed its tools and does not list them.')
      } finally {
        limit.cancel()
      }
    }
    connection.isRereading = false
  }

  /** In the newest protocol a server notifies only clients that subscribe, and proxies end quiet streams. */
  async function listen(connection: Connection): Promise<void> {
    while (connection.isOpen) {
      try {
        const subscription = await connection.client.listen({ toolsListChanged: true }, { timeout: connectTimeoutMs })
        await subscription.closed
        await pause(listenAgainMs)
        // A change in the meantime was not announced to us.
        void reread(connection)
      } catch {
        await pause(listenRetryMs) // the list stays as it is until the server can be reached
      }
    }
  }

  function pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => void clock.after(delayMs, resolve))
  }

  function setTools(list: ToolList): void {
    if (isDeepStrictEqual(list, known)) return
    const isFirst = known === null
    known = list
    if (isFirst) return
    log.info({ server: name, tools: list.tools.length }, 'The tools of an MCP server have changed.')
    options.onToolsChanged(list)
  }

  /** Closes in the background, because a child process that ignores the end of its input takes seconds to stop. */
  function discard(connection: Connection): void {
    connection.isOpen = false
    retired.delete(connection)
    const done = connection.client
      .close()
      // After a failed handshake the client does not own the transport, so we close it ourselves.
      .then(() => connection.link.transport.close())
      .catch(() => {}) // the connection may be broken already
      .finally(() => closing.delete(done))
    closing.add(done)
  }

  /** Lets no new call use the connection. Running calls may finish: over HTTP each has its own socket, which may still work. */
  function retire(connection: Connection): void {
    connection.isOpen = false
    if (connection.calls === 0) discard(connection)
    else retired.add(connection)
  }

  async function connected(): Promise<Connection> {
    if (closed) throw new AppError('tool_unavailable', `The MCP server ${name} is being shut down. Nothing was sent.`)
    if (current?.isOpen) return current
    opening ??= withoutActivity(open).finally(() => (opening = null))
    const connection = await opening
    if (closed) discard(connection)
    else if (current !== connection) {
      current = connection
      setTools(connection.list)
    }
    return connection
  }

  async function connectedForCall(signal: AbortSignal): Promise<Connection> {
    const limit = timeLimit(clock, connectWaitMs)
    try {
      return await abortable(connected(), AbortSignal.any([signal, limit.signal]))
    } catch (error) {
      if (signal.aborted) throw error
      throw new AppError(
        'tool_unavailable',
        `The MCP server ${name} is not there. Nothing was sent. ${toReason(error)}`,
        { cause: error },
      )
    } finally {
      limit.cancel()
    }
  }

  async function call(tool: McpTool, input: JsonValue, context: ToolContext): Promise<CallToolResult> {
    const overdue = new AbortController()
    const timer = clock.after(callTimeoutMs, () => {
      const message = `The MCP server ${name} did not answer within ${callTimeoutMs / 1000} s.`
      overdue.abort(new AppError('tool_timed_out', message, { details: { outcome: 'unknown' } }))
    })
    const signal = AbortSignal.any([context.signal, overdue.signal])
    try {
      for (let sessionRenewed = false; ; sessionRenewed = true) {
        const connection = await connectedForCall(signal)
        connection.calls += 1
        let isLost = false
        try {
          return await send(connection, tool, input, context, signal)
        } catch (error) {
          // An aborted call does not mean that the connection is broken; other calls may be using it.
          if (signal.aborted) throw error
          const failure = toCallFailure(error, name)
          isLost = failure.connectionIsLost
          // The only retry: the server did not know the session, so it cannot have processed the call.
          if (failure.sessionIsGone && !sessionRenewed) continue
          throw failure.error
        } finally {
          connection.calls -= 1
          if (isLost || !connection.isOpen) retire(connection)
        }
      }
    } catch (error) {
      throw signal.aborted ? toAbortError(signal) : error
    } finally {
      timer.cancel()
    }
  }

  return {
    name,
    listTools: async () => (await connected()).list,
    call,
    async close() {
      closed = true
      shutdown.abort(new AppError('tool_unavailable', `The MCP server ${name} is being shut down.`))
      await opening?.catch(() => {})
      if (current !== null) {
        const { isOpen, link } = current
        if (isOpen) await atMost(clock, endSessionTimeoutMs, link.endSession())
        discard(current)
      }
      for (const connection of retired) discard(connection)
      await Promise.all(closing)
    },
  }
}

const toolsPage = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() })

/** The library throws these errors if one definition is not valid, and if there are more than `libraryPagesMax` pages. */
const readOurselves: ReadonlySet<string> = new Set([SdkErrorCode.InvalidResult, SdkErrorCode.ListPaginationExceeded])

/** Reads each definition by itself, and stops at the limits with what it has read. */
async function readEachTool(client: Client, options: RequestOptions): Promise<ToolList> {
  const list: ToolList = { tools: [], invalid: [] }
  let cursor: string | null | undefined
  let chars = 0
  for (let page = 0; page < pagesMax; page += 1) {
    const params = typeof cursor === 'string' ? { cursor } : {}
    const answer = await client.request({ method: 'tools/list', params }, toolsPage, options)
    for (const item of answer.tools) {
      if (list.tools.length > toolsMax) return list
      if (list.invalid.length === toolsMax) return { ...list, excess: `It lists ${toolsMax} tools that are not valid.` }
      const checked = specTypeSchemas.Tool['~standard'].validate(item)
      if (checked.issues === undefined) list.tools.push(checked.value)
      else {
        const { name } = (item ?? {}) as { name?: unknown }
        const reason = `Its definition is not valid: ${excerpt(issuesSentence(checked.issues), 300)}.`
        list.invalid.push({ name: typeof name === 'string' ? excerpt(name) : 'a tool without a name', reason })
      }
    }
    cursor = answer.nextCursor
    if (typeof cursor !== 'string') return list
    chars += JSON.stringify(answer.tools).length
    if (chars > listCharsMax)
      return { ...list, excess: `Its list of tools has more than ${listCharsMax / 1024 / 1024} MiB.` }
  }
  return { ...list, excess: `Its list of tools has more than ${pagesMax} pages.` }
}

async function send(
  connection: Connection,
  tool: McpTool,
  input: JsonValue,
  context: ToolContext,
  signal: AbortSignal,
): Promise<CallToolResult> {
  signal.throwIfAborted()
  return connection.client.callTool(
    {
      name: tool.name,
      arguments: input as Record<string, unknown>,
      _meta: {
        idempotencyKey: context.idempotencyKey,
        ...(context.traceparent === undefined ? {} : { traceparent: context.traceparent }),
      },
    },
    {
      signal,
      timeout: never,
      // The output schema is removed, because the library would throw if the result does not match it, although the call has
      // been carried out. Passing a definition at all keeps the library from sending the call again by itself.
      toolDefinition: { ...tool, outputSchema: undefined },
      onprogress: ({ message, progress, total }) => {
        if (!signal.aborted)
          context.progress(
            excerpt(message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`), progressCharsMax),
          )
      },
    },
  )
}

/** Returns the signal's reason if it is an AppError, else `tool_cancelled`. */
function toAbortError(signal: AbortSignal): AppError {
  if (signal.reason instanceof AppError) return signal.reason
  return new AppError('tool_cancelled', 'The call was cancelled.', { cause: signal.reason })
}

/** Rejects when the signal aborts, although `work` goes on: some parts of a handshake cannot be interrupted. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** A signal that is aborted after this time. */
function timeLimit(clock: Clock, limitMs: number): { signal: AbortSignal; cancel(): void } {
  const overdue = new AbortController()
  const timer = clock.after(limitMs, () => {
    overdue.abort(new AppError('tool_unavailable', `It did not answer within ${limitMs / 1000} s.`))
  })
  return { signal: overdue.signal, cancel: () => timer.cancel() }
}

/** Resolves when `work` has ended, or after this time. */
export function atMost(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(limitMs, resolve)
    work
      .catch(() => {}) // best effort: a failure changes nothing
      .finally(() => {
        timer.cancel()
        resolve()
      })
  })
}
