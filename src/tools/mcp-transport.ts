// The transport to one MCP server: a child process (stdio) or streamable HTTP.
//
// A child process gets a few basic variables and its configured `env`, never the whole
// environment of this server, because that contains our API keys.

import { type JSONRPCMessage, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { DEFAULT_INHERITED_ENV_VARS, StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { AppError } from '../errors/app-error.ts'
import { type HttpServerConfig, type McpServerConfig, type StdioServerConfig, withVariables } from './mcp-config.ts'
import { workTraceparent } from '../kit/activity.ts'

export type Environment = Record<string, string | undefined>

export type McpTransport = {
  transport: Transport
  /** The last characters that a child process wrote to stderr, for the log. */
  stderrTail(): string
  /** Tells an HTTP server that the session is over; does nothing for a child process. May be slow. */
  endSession(): Promise<void>
}

/** The `data` of the error response that we create ourselves if a response was cut off. */
export const streamCut = 'answer_cut_off'

const stderrTailCharsMax = 2_000

/** The largest message that we accept from a server: a response, or a page of its tool list. */
export const messageBytesMax = 10 * 1024 * 1024
const lineFeed = 0x0a

/** Throws `config_invalid` if the configuration cannot be used. */
export function openTransport(config: McpServerConfig, environment: Environment): McpTransport {
  return 'command' in config ? stdio(config, environment) : http(config, environment)
}

function stdio(config: StdioServerConfig, environment: Environment): McpTransport {
  const inherited: Record<string, string> = {}
  for (const name of DEFAULT_INHERITED_ENV_VARS) {
    const value = environment[name]
    if (value !== undefined) inherited[name] = value
  }
  const transport = new StdioClientTransport({
    command: config.command,
    args: config.args ?? [],
    env: { ...inherited, ...withVariables(config.env ?? {}, environment) },
    ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
    stderr: 'pipe',
    maxBufferSize: messageBytesMax,
  })
  // stderr must always be read, because a child blocks when the pipe is full.
  let tail = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString('utf8')).slice(-stderrTailCharsMax)
  })
  return { transport, stderrTail: () => tail, endSession: async () => {} }
}

function http(config: HttpServerConfig, environment: Environment): McpTransport {
  const type = config.type ?? 'http'
  if (type !== 'http' && type !== 'streamable-http') {
    throw new AppError('config_invalid', `The transport "${type}" is not supported; use "http".`)
  }
  const { url, headers } = withoutCredentials(config.url, withVariables(config.headers ?? {}, environment))
  const transport = new HttpTransport(url, { requestInit: { headers }, fetch: boundedFetch })
  return { transport, stderrTail: () => '', endSession: () => transport.terminateSession() }
}

/**
 * Moves the credentials of `https://user:password@host` into a header, because `fetch` refuses such a URL with an error
 * that contains the password and would appear in logs and listings.
 */
function withoutCredentials(
  address: string,
  headers: Record<string, string>,
): { url: URL; headers: Record<string, string> } {
  const url = new URL(address)
  if (url.username === '' && url.password === '') return { url, headers }
  const credentials = `${unescaped(url.username)}:${unescaped(url.password)}`
  url.username = ''
  url.password = ''
  const given = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  if (given) return { url, headers }
  return { url, headers: { ...headers, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } }
}

/** Returns the text unchanged if it is not valid percent-encoding: passwords are often pasted with a bare %. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Passes the trace context of the tool call on. */
function withTraceparent(init: RequestInit | undefined): RequestInit | undefined {
  const traceparent = workTraceparent()
  if (traceparent === undefined) return init
  const headers = new Headers(init?.headers)
  headers.set('traceparent', traceparent)
  return { ...init, headers }
}

/** Limits a response body, or each line of an event stream, to `messageBytesMax`; the stream as a whole may be longer. */
async function boundedFetch(input: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, withTraceparent(init))
  if (response.body === null) return response
  const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
  let length = 0
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      const end = isStream ? bytes.lastIndexOf(lineFeed) : -1
      length = end === -1 ? length + bytes.length : bytes.length - end - 1
      if (length > messageBytesMax) {
        throw new Error(`The answer of the server is longer than ${messageBytesMax / 1024 / 1024} MiB`)
      }
      controller.enqueue(bytes)
    },
  })
  return new Response(response.body.pipeThrough(bounded), {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  })
}

/**
 * If the stream of a response ends without the response (the server died), the library waits for the whole timeout. This
 * class fails the request at once: it delivers an error response of its own (see `streamCut`).
 */
class HttpTransport extends StreamableHTTPClientTransport {
  override async send(
    message: JSONRPCMessage | JSONRPCMessage[],
    options: Parameters<StreamableHTTPClientTransport['send']>[1] = {},
  ): Promise<void> {
    if (Array.isArray(message) || !('method' in message) || !('id' in message)) return super.send(message, options)
    const { id } = message
    return super.send(message, {
      ...options,
      onRequestStreamEnd: () => {
        options.onRequestStreamEnd?.()
        // If the response did arrive, the library drops this message, because no request with this id is pending.
        this.onmessage?.({
          jsonrpc: '2.0',
          id,
          error: { code: -32000, message: 'The answer was cut off.', data: streamCut },
        })
      },
    })
  }
}
