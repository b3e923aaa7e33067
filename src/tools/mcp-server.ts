// One configured MCP server. It reconnects when its connection is lost:
//
//   closed ── connect ──▶ open ── the process or the session dies ──▶ closed
//
// A call on a closed server makes one attempt to connect before anything is sent.
// A call that may have arrived is never sent again: it fails with an unknown outcome
// (`tool_failed` with `details.outcome`). `tool_unavailable` always means that the server
// has done nothing.

import { type CallToolResult, Client, ProtocolError, type Tool as McpTool } from '@modelcontextprotocol/client'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import { excerpt } from './excerpt.ts'
import { toCallFailure, toReason } from './mcp-failure.ts'
import type { McpServerConfig } from './mcp-config.ts'
import { type Environment, type McpTransport, openTransport } from './mcp-transport.ts'
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
  /** The time limit for connecting and listing the tools together. */
  connectTimeoutMs: number
  callTimeoutMs: number
}

export type McpServer = {
  readonly name: string
  /** Opens the first connection and reads all pages of the list. Throws `tool_unavailable` with the reason. */
  listTools(): Promise<McpTool[]>
  call(tool: McpTool, input: JsonValue, context: ToolContext): Promise<CallToolResult>
  close(): Promise<void>
}

type Connection = { client: Client; link: McpTransport; isOpen: boolean; calls: number; tools: McpTool[] }

/** Disables the library's own timeout (this is the longest delay of a timer); our clock enforces the time limits. */
const never = 0x7fffffff

/** Only the first tools of a server are used, because every tool is part of every prompt. */
const toolsMax = 500
const progressCharsMax = 1_000
/** The most pages of a tool list; each page may be as large as `messageBytesMax`. */
const listMaxPages = 10

/** How long closing waits for the server to confirm the end of the session. */
const endSessionTimeoutMs = 1_000

export function createMcpServer(name: string, config: McpServerConfig, options: McpServerOptions): McpServer {
  const { clock, log, environment, connectTimeoutMs, callTimeoutMs } = options
  let current: Connection | null = null
  let opening: Promise<Connection> | null = null
  let closed = false
  const retired = new Set<Connection>()
  const closing = new Set<Promise<unknown>>()

  async function open(): Promise<Connection> {
    const overdue = new AbortController()
    const timer = clock.after(connectTimeoutMs, () => {
      overdue.abort(new AppError('tool_unavailable', `It did not answer within ${connectTimeoutMs / 1000} s.`))
    })
    try {
      // Over HTTP we negotiate the newest protocol version at once. A child process would have to be started twice for the
      // negotiation, so we try the legacy handshake first and negotiate only if the server refuses it.
      if ('url' in config) return await handshake('auto', overdue.signal)
      return await handshake('legacy', overdue.signal).catch((error: unknown) => {
        if (error instanceof ProtocolError) return handshake('auto', overdue.signal)
        throw error
      })
    } catch (error) {
      throw new AppError('tool_unavailable', toReason(overdue.signal.aborted ? overdue.signal.reason : error), {
        cause: error,
      })
    } finally {
      timer.cancel()
    }
  }

  async function handshake(mode: 'legacy' | 'auto', signal: AbortSignal): Promise<Connection> {
    const link = openTransport(config, environment)
    // Input requests of the server during a call are not supported.
    const client = new Client(
      { name: 'polylog', version: '1' },
      { versionNegotiation: { mode }, inputRequired: { autoFulfill: false }, listMaxPages },
    )
    const connection: Connection = { client, link, isOpen: true, calls: 0, tools: [] }
    client.onclose = () => {
      connection.isOpen = false
      if (current === connection && !closed)
        log.warn({ server: name, stderr: link.stderrTail() }, 'An MCP server closed its connection.')
    }
    try {
      await abortable(client.connect(link.transport, { signal, timeout: never }), signal)
      const { tools } = await abortable(client.listTools(undefined, { signal, timeout: never }), signal)
      if (tools.length > toolsMax) {
        log.warn({ server: name, listed: tools.length, used: toolsMax }, 'An MCP server lists too many tools.')
      }
      connection.tools = tools.slice(0, toolsMax)
      return connection
    } catch (error) {
      log.warn({ server: name, stderr: link.stderrTail(), err: error }, 'An MCP server could not be connected.')
      discard(connection)
      throw error
    }
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
    opening ??= open().finally(() => (opening = null))
    const connection = await opening
    if (closed) discard(connection)
    else current = connection
    return connection
  }

  async function connectedForCall(signal: AbortSignal): Promise<Connection> {
    try {
      return await abortable(connected(), signal)
    } catch (error) {
      if (signal.aborted) throw error
      throw new AppError(
        'tool_unavailable',
        `The MCP server ${name} is not there. Nothing was sent. ${toReason(error)}`,
        { cause: error },
      )
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
    listTools: async () => (await connected()).tools,
    call,
    async close() {
      closed = true
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

function atMost(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
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
