// Receives request bodies, the same way for all routes. A body from which no byte arrives
// for some time is aborted. If a request is refused before its body was read, the rest of
// the body is read and discarded, within limits: if the server closed the socket while the
// client is still sending, the client would report a broken pipe instead of our reply.

import type { IncomingMessage, Server as HttpServer } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { sharedTimers } from '../kit/shared-timers.ts'
import type { Server } from './routes.ts'

export type IntakeLimits = {
  /** A body is aborted if no byte arrives for this long. */
  bodyIdleMs: number
  /** At most this many bytes are discarded after an early reply; then the connection is closed. */
  drainBytesMax: number
  /** The time limit for discarding. */
  drainMs: number
}

/** Three times the default upload limit: enough for a client that sends its whole body before it reads the reply. */
export const drainBytesMax = 64 * 1024 * 1024
export const drainMs = 30_000

/** Requests whose client waits for `100 Continue` before it sends the body. */
const awaitingContinue = new WeakSet<IncomingMessage>()

/** Delays the reply to `Expect: 100-continue` until the request has been checked; Node would send it at once. */
export function waitForContinue(server: HttpServer): void {
  server.on('checkContinue', (request, response) => {
    awaitingContinue.add(request)
    server.emit('request', request, response)
  })
}

/** Sends `100 Continue` if the client waits for it. Throws `body_too_large` if the announced body is too large. */
export function admitBody({ raw }: FastifyRequest, reply: FastifyReply, bytesMax: number): void {
  if (!awaitingContinue.has(raw)) return
  if (Number(raw.headers['content-length']) > bytesMax) throw bodyTooLarge()
  awaitingContinue.delete(raw)
  reply.raw.writeContinue()
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** If true, the handler calls `admitBody` itself; otherwise it is called before the handler. */
    admitsBodyItself?: boolean
  }
}

export function installIntake(server: Server, clock: Clock, limits: IntakeLimits): void {
  /** Requests whose body was aborted; their connection cannot be reused. */
  const aborted = new WeakSet<IncomingMessage>()
  const timers = sharedTimers(clock)

  // Runs when the caller and the route are known, before the first byte of the body is read.
  server.addHook('preParsing', (request, reply, _payload, done) => {
    if (hasBody(request.raw)) {
      checkEncoding(request.raw)
      const { bodyLimit, config } = request.routeOptions
      if (config.admitsBodyItself !== true) admitBody(request, reply, bodyLimit)
      watch(request.raw)
    }
    done()
  })

  server.addHook('onSend', async (request, reply) => {
    const { raw } = request
    if (raw.complete || !hasBody(raw)) return
    if (awaitingContinue.has(raw) || aborted.has(raw)) {
      reply.header('connection', 'close')
      return
    }
    // Fastify asks to close the connection if it did not read the whole body; the body must be drained first.
    reply.removeHeader('connection')
    const drained = drain(raw, clock, limits)
    // Node closes such a connection as soon as the reply is sent, so the reply waits for the drain.
    if (wantsClose(raw)) await drained
  })

  function watch(raw: IncomingMessage): void {
    let seen = raw.socket.bytesRead
    const check = () => {
      if (raw.complete || raw.destroyed) return
      const { bytesRead } = raw.socket
      if (bytesRead !== seen) {
        seen = bytesRead
        timer = timers.after(limits.bodyIdleMs, check)
        return
      }
      aborted.add(raw)
      // The error makes the body's reader reply. Destroying the stream would destroy the socket before the reply.
      if (raw.listenerCount('error') > 0) raw.emit('error', bodyStopped(limits.bodyIdleMs))
      else raw.destroy()
    }
    let timer = timers.after(limits.bodyIdleMs, check)
    raw.once('close', () => timer.cancel())
  }
}

export function bodyTooLarge(cause?: unknown): AppError {
  return new AppError('body_too_large', 'The body is larger than this server accepts; send less.', { cause })
}

function bodyStopped(idleMs: number): AppError {
  return new AppError('request_timeout', `No byte of the body came for ${idleMs} ms; send the request again.`)
}

/** Compressed bodies are refused: unpacked they may have any size, and without a sentence their bytes would be "not JSON". */
function checkEncoding({ headers }: IncomingMessage): void {
  if (headers['content-encoding'] === undefined) return
  const encoding = headers['content-encoding'].trim().toLowerCase()
  if (!/\b(?:gzip|deflate|br|zstd|compress)\b/.test(encoding)) return
  throw new AppError(
    'unsupported_media_type',
    `A body with Content-Encoding ${encoding.slice(0, 40)} is not accepted; send it uncompressed.`,
  )
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function wantsClose({ headers, httpVersion }: IncomingMessage): boolean {
  const connection = headers.connection?.toLowerCase() ?? ''
  return connection.includes('close') || (httpVersion === '1.0' && !connection.includes('keep-alive'))
}

/** Reads and discards the rest of a body. Resolves at its end, or when the connection is closed. */
function drain(raw: IncomingMessage, clock: Clock, limits: IntakeLimits): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0
    const timer = clock.after(limits.drainMs, () => raw.destroy())
    const done = () => {
      timer.cancel()
      resolve()
    }
    raw.unpipe()
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limits.drainBytesMax) raw.destroy()
    })
    // A client may disconnect in the middle of its body once it has read the reply.
    raw.on('error', done)
    raw.on('end', done)
    raw.on('close', done)
    raw.resume()
  })
}
