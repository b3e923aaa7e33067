// One configured MCP server, over as many connections as it needs:
//
//   closed ── connect ──▶ open ── the process or the session dies ──▶ closed
//
// A call on a closed server makes one attempt to open it, before anything is sent.
// A call that may have arrived is never sent again: whoever made it learns that its
// outcome is unknown (`tool_failed` with `details.outcome`). `tool_unavailable`
// always means that nothing happened.

import { type CallToolResult, Client, ProtocolError, type Tool as McpTool } from '@modelcontextprotocol/client'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import { excerpt } from './excerpt.ts'
import { toCallFailure, toReason } from './mcp-failure.ts'
import type { McpServerConfig } from './mcp-config.ts'
import { type Environment, type McpTransport, openTransport } from './mcp-transport.ts'
import type { ToolContext } from './tool.ts'

/** What we use of a pino logger. */
export type McpLog = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
}

export type McpServerOptions = {
  clock: Clock
  log: McpLog
  environment: Environment
  /** For the connection and the list of tools together. */
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

/** Only our own clock ends requests; the library's timer is set to the longest that timers can do. */
const never = 0x7fffffff

/** Every tool is part of every prompt; servers with more than this are few, and their first ones are used. */
const toolsMax = 500
const progressCharsMax = 1_000
/** Each page may be as long as a message. */
const listMaxPages = 10

/** A session is ended politely, but nobody waits long for the thanks. */
const goodbyeMs = 1_000

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
      // The newest protocol is asked for where that costs nothing. A child process would be started twice for the question,
      // so it is first spoken to as all of them understand, and asked only when it refuses.
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
    // Nobody is there to answer a server that asks for input in the middle of a call.
    const client = new Client(
      { name: 'polylog', version: '1' },
      { versionNegotiation: { mode }, inputRequired: { autoFulfill: false }, listMaxPages },
    )
    const connection: Connection = { client, link, isOpen: true, calls: 0, tools: [] }
    client.onclose = () => {
      connection.isOpen = false
      if (current === connection && !closed)
        log.warn({ server: name, stderr: link.lastWords() }, 'An MCP server closed its connection.')
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
      log.warn({ server: name, stderr: link.lastWords(), err: error }, 'An MCP server could not be connected.')
      discard(connection)
      throw error
    }
  }

  /** In the background: a child process that ignores the end of its input takes seconds to be stopped. */
  function discard(connection: Connection): void {
    connection.isOpen = false
    retired.delete(connection)
    const done = connection.client
      .close()
      // A failed handshake leaves the client without its transport, which then has to be closed itself.
      .then(() => connection.link.transport.close())
      .catch(() => {}) // what is thrown away may be broken
      .finally(() => closing.delete(done))
    closing.add(done)
  }

  /** No new call uses it. Calls that are under way are left to end: over HTTP each has a socket of its own, which may be well. */
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
          // A call that was given up says nothing about the connection, which other calls are using.
          if (signal.aborted) throw error
          const failure = toCallFailure(error, name)
          isLost = failure.connectionIsLost
          // The one case of sending again: the server said that it does not know the session, so it looked at nothing else.
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
        if (isOpen) await atMost(clock, goodbyeMs, link.sayGoodbye())
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
      _meta: { idempotencyKey: context.idempotencyKey },
    },
    {
      signal,
      timeout: never,
      // Without the output schema: the library would throw about an answer that does not fit it, when all has been done.
      // That it is given at all keeps the library from sending again by itself.
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

/** Who aborted knows why, and gets its own reason back. */
function toAbortError(signal: AbortSignal): AppError {
  if (signal.reason instanceof AppError) return signal.reason
  return new AppError('tool_cancelled', 'The call was cancelled.', { cause: signal.reason })
}

/** Ends the waiting, not the work: parts of a handshake cannot be interrupted. */
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
      .catch(() => {}) // a goodbye that is not heard changes nothing
      .finally(() => {
        timer.cancel()
        resolve()
      })
  })
}
