// The Node HTTP server under Fastify: timeouts for receiving a request, the maximum number
// of connections, and the reply to bytes that are not HTTP. None of these limits applies to
// a response: a stream may stay open for days.

import type { RequestListener, Server as HttpServer } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { statusOfErrorCode } from '../errors/status.ts'
import { nodeHttp } from '../kit/node-http.ts'
import { plainBody } from './error-body.ts'
import { waitForContinue } from './request-intake.ts'

export type SocketLimits = {
  /** From the first byte of a request to the end of its headers. */
  headersTimeoutMs: number
  /** From the first byte of a request to the end of its body, even if bytes keep arriving. */
  requestTimeoutMs: number
  connectionsMax: number
}

/** Longer than the 60 s of load balancers: if the server closed an idle connection first, the next request would fail. */
const keepAliveTimeoutMs = 72_000

/** Node's default, named here because an error message mentions it. It includes the URL with its query. */
const headerBytesMax = 16 * 1024

/** Browsers send about 20, proxies add some. */
const headersMax = 200

export function createHttpServer(listener: RequestListener, limits: SocketLimits): HttpServer {
  const { headersTimeoutMs, requestTimeoutMs, connectionsMax } = limits
  const server = nodeHttp.createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: headerBytesMax,
      // BrowserGuard.checkHost refuses such a request with a proper error body.
      requireHostHeader: false,
      // Node checks the timeouts at this interval, so a timeout is late by at most this much.
      connectionsCheckingInterval: Math.min(Math.max(Math.floor(headersTimeoutMs / 4), 50), 5000),
    },
    listener,
  )
  server.maxHeadersCount = headersMax
  server.maxConnections = connectionsMax
  waitForContinue(server)
  server.on('clientError', answerClientError)
  // Without a listener Node closes the socket without a reply.
  server.on('connect', (_request, socket) => answerClientError(new Error('CONNECT'), socket))
  // Node would reply 417 without a body. An expectation that a server does not know may be ignored.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  return server
}

/** Replies to a request that cannot be parsed or timed out. There is no request object then, only a socket. */
export function answerClientError(
  cause: Error & { code?: string },
  socket: Pick<Socket, 'destroyed' | 'writable' | 'end' | 'destroy'> | Duplex,
): void {
  if (cause.code === 'ECONNRESET' || socket.destroyed) return
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const error = clientError(cause.code)
  const status = statusOfErrorCode(error.code)
  const body = JSON.stringify(plainBody(error))
  const head = [
    `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function clientError(code: string | undefined): AppError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AppError('request_timeout', 'The request did not come completely in time; send it again.')
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new AppError(
      'headers_too_large',
      `The address and the headers have more than ${headerBytesMax} bytes together, or there are more than ${headersMax} headers; send less.`,
    )
  }
  return new AppError('invalid_request', 'The request is not valid HTTP.')
}
