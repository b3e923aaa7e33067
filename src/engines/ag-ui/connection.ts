// One HTTP request to a remote agent and its streamed answer. Connecting and sending are two
// steps, so that the turn is in the journal before the first byte of the request is sent, and
// a server that cannot be reached is known before that.

import type * as http from 'node:http'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import { nodeHttp, nodeHttps } from '../../kit/node-http.ts'

const connectMs = 10_000
/** An error body is read only for its reason. */
const errorBytesMax = 16 * 1024
/** How long a connection that nobody reads stays open, so that the remote agent can finish its work. */
const detachedMs = 600_000

export type Target = { url: URL; headers: Record<string, string>; name: string; clock: Clock }

export type Answered = { status: number; contentType: string }

export class Connection {
  private readonly request: http.ClientRequest
  private readonly target: Target
  private incoming: http.IncomingMessage | undefined
  private failure: Error | undefined
  private ended = false
  private wake: (() => void) | undefined

  private constructor(request: http.ClientRequest, target: Target) {
    this.request = request
    this.target = target
    request.on('response', (incoming) => {
      this.incoming = incoming
      for (const event of ['readable', 'end', 'close'] as const) incoming.on(event, () => this.wake?.())
      incoming.on('end', () => (this.ended = true))
      incoming.on('error', (error) => this.fail(error))
      this.wake?.()
    })
    request.on('error', (error) => this.fail(error))
    request.on('close', () => this.fail(new Error('the connection was closed')))
  }

  /** Throws `engine_unavailable`: no byte of the request has been sent. */
  static async open(target: Target, body: string, signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted()
    const { url, headers, clock } = target
    const isSecure = url.protocol === 'https:'
    const request = (isSecure ? nodeHttps : nodeHttp).request(url, {
      method: 'POST',
      agent: false,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        accept: 'text/event-stream',
        // Compression would delay tokens, because it works on blocks.
        'accept-encoding': 'identity',
      },
    })
    const connection = new Connection(request, target)
    const connected = new Promise<void>((resolve) => {
      request.on('socket', (socket) => socket.once(isSecure ? 'secureConnect' : 'connect', () => resolve()))
    })
    const timer = clock.after(connectMs, () => request.destroy(new Error('it did not answer in time')))
    const leave = () => request.destroy()
    signal.addEventListener('abort', leave, { once: true })
    try {
      await Promise.race([connected, connection.failed()])
    } catch (error) {
      request.destroy()
      signal.throwIfAborted()
      throw new AppError(
        'engine_unavailable',
        `The remote agent ${target.name} cannot be reached (${reasonOf(error)}). Check that it runs and that its url is right.`,
        { retryable: true, cause: error },
      )
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', leave)
    }
    connection.send = () => request.end(body)
    return connection
  }

  /** Sends the request. From here on the remote agent may be at work. */
  send: () => void = () => {}

  /** Status and headers of the answer. Throws if the connection is closed before, or if `signal` is aborted. */
  async answered(signal: AbortSignal): Promise<Answered> {
    for (;;) {
      signal.throwIfAborted()
      const { incoming } = this
      if (incoming !== undefined) {
        return { status: incoming.statusCode ?? 0, contentType: incoming.headers['content-type'] ?? '' }
      }
      if (this.failure !== undefined) throw this.incomplete('before it answered')
      await this.change(signal)
    }
  }

  /** As `read`; `late` if nothing comes within this time. */
  async readWithin(ms: number, signal: AbortSignal): Promise<Buffer | undefined | 'late'> {
    let isLate = false
    const timer = this.target.clock.after(ms, () => {
      isLate = true
      this.wake?.()
    })
    try {
      return await this.read(signal, () => isLate)
    } finally {
      timer.cancel()
    }
  }

  /** The next bytes; undefined at the end of the answer. Throws if it is cut off, or if `signal` is aborted. */
  async read(signal: AbortSignal): Promise<Buffer | undefined>
  async read(signal: AbortSignal, isLate: () => boolean): Promise<Buffer | undefined | 'late'>
  async read(signal: AbortSignal, isLate = () => false): Promise<Buffer | undefined | 'late'> {
    for (;;) {
      signal.throwIfAborted()
      const bytes = this.incoming?.read() as Buffer | null | undefined
      if (bytes != null) return bytes
      if (this.ended) return undefined
      if (this.failure !== undefined) throw this.incomplete('in the middle of its answer')
      if (isLate()) return 'late'
      await this.change(signal)
    }
  }

  /** The beginning of the body of an error. */
  async readReason(signal: AbortSignal): Promise<string> {
    const pieces: Buffer[] = []
    let length = 0
    try {
      while (length < errorBytesMax) {
        const bytes = await this.read(signal)
        if (bytes === undefined) break
        pieces.push(bytes)
        length += bytes.length
      }
    } catch {
      signal.throwIfAborted()
    }
    return Buffer.concat(pieces).subarray(0, errorBytesMax).toString('utf8')
  }

  /** Nobody reads the rest. The connection stays open for some time, because closing it would stop the remote agent. */
  detach(onEnd: () => void): void {
    this.wake = undefined
    this.incoming?.resume()
    this.request.socket?.unref()
    const timer = this.target.clock.after(detachedMs, () => this.close())
    this.request.once('close', () => {
      timer.cancel()
      onEnd()
    })
    if (this.request.closed) {
      timer.cancel()
      onEnd()
    }
  }

  close(): void {
    this.request.destroy()
  }

  private fail(error: Error): void {
    this.failure ??= error
    this.wake?.()
  }

  private async failed(): Promise<never> {
    while (this.failure === undefined) await new Promise<void>((resolve) => (this.wake = resolve))
    throw this.failure
  }

  private async change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    this.wake = wake
    signal.addEventListener('abort', wake, { once: true })
    await promise
    signal.removeEventListener('abort', wake)
  }

  private incomplete(when: string): AppError {
    return new AppError(
      'engine_stream_incomplete',
      `The remote agent ${this.target.name} closed the connection ${when}; what it did until then may have happened.`,
      { cause: this.failure },
    )
  }
}

/** Only the code of the system, because a message may contain what was sent. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: string }
  return typeof code === 'string' ? code : (message ?? 'no reason')
}
