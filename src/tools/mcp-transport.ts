// How the bytes of one MCP server travel: a child process, or streamable HTTP.
//
// A child gets the few variables that any program needs and its own `env`, never the
// server's own environment: our keys are in there.

import { type JSONRPCMessage, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { DEFAULT_INHERITED_ENV_VARS, StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { AppError } from '../errors/app-error.ts'
import { type HttpServerConfig, type McpServerConfig, type StdioServerConfig, withVariables } from './mcp-config.ts'

export type Environment = Record<string, string | undefined>

export type McpTransport = {
  transport: Transport
  /** The end of what a child process wrote to stderr, for the log. */
  lastWords(): string
  /** Tells the other side that the session is over, where there is such a thing. May take its time. */
  sayGoodbye(): Promise<void>
}

/** In `data` of the error that stands for an answer that was cut off. */
export const streamCut = 'answer_cut_off'

const lastWordsCharsMax = 2_000

/** One message of a server: an answer, or a page of its list of tools. More is kept nowhere and of use to no model. */
export const messageBytesMax = 10 * 1024 * 1024
const lineFeed = 0x0a

/** Throws `config_invalid` where the configuration cannot be used. */
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
  // Read in any case: a child that writes into a full pipe stands still.
  let words = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString('utf8')).slice(-lastWordsCharsMax)
  })
  return { transport, lastWords: () => words, sayGoodbye: async () => {} }
}

function http(config: HttpServerConfig, environment: Environment): McpTransport {
  const type = config.type ?? 'http'
  if (type !== 'http' && type !== 'streamable-http') {
    throw new AppError('config_invalid', `The transport "${type}" is not supported; use "http".`)
  }
  const { url, headers } = withoutCredentials(config.url, withVariables(config.headers ?? {}, environment))
  const transport = new HttpTransport(url, { requestInit: { headers }, fetch: boundedFetch })
  return { transport, lastWords: () => '', sayGoodbye: () => transport.terminateSession() }
}

/**
 * `https://user:password@host` as a header: `fetch` refuses such an address, and names it with the password in the error,
 * which would then stand in logs and listings.
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

/** A lone % is common in passwords that somebody pasted. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** An answer is a body, or lines of a stream that may stay open for long: neither may be longer than one message. */
async function boundedFetch(input: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
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
 * The library waits out the whole timeout when the stream of an answer ends without the answer (the server died). Here the
 * waiting request is told at once, in the form of an error answer that only we make.
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
        // Where the answer did come, nobody waits for this id any more and the message is dropped.
        this.onmessage?.({
          jsonrpc: '2.0',
          id,
          error: { code: -32000, message: 'The answer was cut off.', data: streamCut },
        })
      },
    })
  }
}
