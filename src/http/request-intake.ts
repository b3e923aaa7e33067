// How the bytes of a request come in, the same for all routes. A body that stops coming
// is given up, whatever its size. A request that is refused before its body was read is
// still answered in a way that the client can see: the rest of the body is read and
// thrown away, within bounds, because closing the socket on a client that is still
// sending makes the client report a broken pipe instead of our answer.

import type { IncomingMessage, Server as HttpServer } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import type { Server } from './routes.ts'

export type IntakeLimits = {
  /** A body of which no byte comes for this long is given up. */
  bodyIdleMs: number
  /** Bytes that are thrown away after an early answer; then the connection is closed. */
  drainBytesMax: number
  /** The same in time. */
  drainMs: number
}

/** Three times the default size of an upload: enough for a client that sends all before it reads. */
export const drainBytesMax = 64 * 1024 * 1024
export const drainMs = 30_000

/** Requests whose client waits for our word before it sends the body. */
const expecting = new WeakSet<IncomingMessage>()

/** `Expect: 100-continue` is answered after the request has been checked, not by Node at once. */
export function waitForContinue(server: HttpServer): void {
  server.on('checkContinue', (request, response) => {
    expecting.add(request)
    server.emit('request', request, response)
  })
}

/** The body is wanted: a client that waits for this word sends it now. Throws `body_too_large`. */
export function admitBody({ raw }: FastifyRequest, reply: FastifyReply, bytesMax: number): void {
  if (!expecting.has(raw)) return
  if (Number(raw.headers['content-length']) > bytesMax) throw bodyTooLarge()
  expecting.delete(raw)
  reply.raw.writeContinue()
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler calls `admitBody` when it knows that it wants the body; else it is called before the handler. */
    admitsBodyItself?: boolean
  }
}

export function installIntake(server: Server, clock: Clock, limits: IntakeLimits): void {
  /** Bodies that are no longer read: their connection is of no more use. */
  const givenUp = new WeakSet<IncomingMessage>()

  // After identity and route are known, before the first byte of the body is read.
  server.addHook('preParsing', async (request, reply) => {
    if (!hasBody(request.raw)) return
    const { bodyLimit, config } = request.routeOptions
    if (config.admitsBodyItself !== true) admitBody(request, reply, bodyLimit)
    watch(request.raw)
  })

  server.addHook('onSend', async (request, reply) => {
    const { raw } = request
    if (raw.complete || !hasBody(raw)) return
    if (expecting.has(raw) || givenUp.has(raw)) {
      reply.header('connection', 'close')
      return
    }
    // Fastify closes the connection after a body that it did not read to its end; that is what must not happen yet.
    reply.removeHeader('connection')
    const drained = drain(raw, clock, limits)
    // Node closes such a connection as soon as the answer is out, so the answer has to wait.
    if (wantsClose(raw)) await drained
  })

  function watch(raw: IncomingMessage): void {
    let seen = raw.socket.bytesRead
    const check = () => {
      if (raw.complete || raw.destroyed) return
      const { bytesRead } = raw.socket
      if (bytesRead !== seen) {
        seen = bytesRead
        timer = clock.after(limits.bodyIdleMs, check)
        return
      }
      givenUp.add(raw)
      // The reader of the body answers the request. Destroying the stream would take the socket with it.
      if (raw.listenerCount('error') > 0) raw.emit('error', bodyStopped(limits.bodyIdleMs))
      else raw.destroy()
    }
    let timer = clock.after(limits.bodyIdleMs, check)
    raw.once('close', () => timer.cancel())
  }
}

export function bodyTooLarge(cause?: unknown): AppError {
  return new AppError('body_too_large', 'The body is larger than this server accepts; send less.', { cause })
}

function bodyStopped(idleMs: number): AppError {
  return new AppError('request_timeout', `No byte of the body came for ${idleMs} ms; send the request again.`)
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function wantsClose({ headers, httpVersion }: IncomingMessage): boolean {
  const connection = headers.connection?.toLowerCase() ?? ''
  return connection.includes('close') || (httpVersion === '1.0' && !connection.includes('keep-alive'))
}

/** Reads the rest of a body and keeps nothing of it. Resolves at its end, or when the client is gone or cut off. */
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
    // A client that has read the answer may hang up in the middle.
    raw.on('error', done)
    raw.on('end', done)
    raw.on('close', done)
    raw.resume()
  })
}
