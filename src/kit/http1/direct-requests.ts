// Requests over connections of our own. Node's client creates a request, a response and a stream of pieces for each answer, and
// a buffer for each read; here a read goes from the memory that all connections share straight to the receiver. For an answer
// that comes word by word this is most of what reading it costs.

import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { nodeHttp } from '../node-http.ts'
import type { Exchange, ExchangeReceiver, ExchangeRequest, Requests } from './exchange.ts'
import { restBytesMax, restIdleMs } from './exchange.ts'
import { ResponseParser } from './response-parser.ts'

/** A connection that was opened early is used within milliseconds, unless its run is cancelled or waits for something. */
const unusedMsMax = 5_000
const idleConnectionsMax = 256
const keepAliveProbeMs = 60_000

/** What is read is used before the next read, so one buffer is enough for all connections. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

export type DirectOptions = {
  tls?: ConnectionOptions
  /** How long a connection may wait for the next request, at most. */
  idleMsMax?: number
  /** How long the rest of a response that was left may take without a byte. */
  restMsMax?: number
}

export class DirectRequests implements Requests {
  private readonly url: URL
  private readonly startLine: string
  private readonly tls: ConnectionOptions
  private readonly idleMsMax: number
  readonly restMsMax: number
  /** The last one was used last. Connections that are being opened early are among them. */
  private readonly idle: Connection[] = []
  /** Shortens the handshake of the next connection. */
  private session: Buffer | undefined

  constructor(url: URL, { tls = {}, idleMsMax = 60_000, restMsMax = restIdleMs }: DirectOptions = {}) {
    this.url = url
    this.startLine = `POST ${url.pathname}${url.search} HTTP/1.1\r\n`
    this.tls = tls
    this.idleMsMax = idleMsMax
    this.restMsMax = restMsMax
  }

  prepare(): void {
    if (this.idle.length === 0) this.keep(this.open(), unusedMsMax)
  }

  /** Throws if a header cannot be sent. */
  post({ headers, body }: ExchangeRequest, receiver: ExchangeReceiver): Exchange {
    let head = this.startLine
    let connectionLine = 'connection: keep-alive\r\n'
    for (const [name, value] of headers) {
      if (name === 'connection') connectionLine = ''
      nodeHttp.validateHeaderName(name)
      nodeHttp.validateHeaderValue(name, value)
      head += `${name}: ${value}\r\n`
    }
    head += `content-length: ${Buffer.byteLength(body)}\r\n${connectionLine}\r\n`
    const connection = this.idle.pop() ?? this.open()
    connection.begin(head + body, receiver)
    return connection
  }

  /** Keeps a connection for the next request, for a limited time. */
  keep(connection: Connection, usableMs: number): void {
    const idleMs = Math.min(usableMs, this.idleMsMax)
    if (this.idle.length === idleConnectionsMax) this.idle.shift()?.destroy()
    this.idle.push(connection)
    connection.rest(idleMs)
  }

  remove(connection: Connection): void {
    const index = this.idle.indexOf(connection)
    if (index !== -1) this.idle.splice(index, 1)
  }

  private open(): Connection {
    return new Connection(this, (onread) =>
      this.url.protocol === 'https:' ? this.openTls(onread) : connectPlain({ ...this.target(), onread }),
    )
  }

  private target() {
    const { hostname, port, protocol } = this.url
    return {
      // An IPv6 address stands in brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveProbeMs,
    }
  }

  private openTls(onread: ReadInto): TLSSocket {
    const target = this.target()
    const options: ConnectionOptions & { onread: ReadInto } = {
      ALPNProtocols: ['http/1.1'],
      // A certificate for an address has no name that could be asked for.
      ...(isIP(target.host) === 0 ? { servername: target.host } : {}),
      ...(this.session === undefined ? {} : { session: this.session }),
      ...this.tls,
      ...target,
      // It is missing in the types of TLS connections only.
      onread,
    }
    const socket = connectSecurely(options)
    socket.on('session', (session: Buffer) => (this.session = session))
    // A session that the server does not want must not be offered again.
    socket.on('error', () => (this.session = undefined))
    return socket
  }
}

type ReadInto = { buffer: Buffer; callback(length: number): boolean }

/** All sockets share their listeners, which find the connection under this name: functions of its own would be much of a connection that waits. */
const connectionOf = Symbol('connection')

type ConnectedSocket = Socket & { [connectionOf]: Connection }

class Connection implements Exchange {
  private readonly owner: DirectRequests
  private readonly socket: Socket
  private readonly parser = new ResponseParser()
  /** Undefined if the connection is idle, or the receiver left. */
  private receiver: ExchangeReceiver | undefined
  private isPaused = false
  /** The system has taken the whole request. With TLS this may be known later than the response. */
  private isSent = true

  constructor(owner: DirectRequests, connect: (onread: ReadInto) => Socket) {
    this.owner = owner
    const socket = connect({ buffer: readBuffer, callback: (length) => this.read(length) })
    this.socket = Object.assign(socket, { [connectionOf]: this })
    this.socket.on('error', Connection.onError)
    this.socket.on('end', Connection.onClosed)
    this.socket.on('close', Connection.onClosed)
    this.socket.on('timeout', Connection.onTimeout)
  }

  private static onError(this: ConnectedSocket, error: Error): void {
    this[connectionOf].closed(error)
  }

  private static onClosed(this: ConnectedSocket): void {
    this[connectionOf].closed()
  }

  private static onTimeout(this: ConnectedSocket): void {
    this[connectionOf].destroy()
  }

  begin(text: string, receiver: ExchangeReceiver): void {
    const { socket } = this
    socket.setTimeout(0)
    socket.ref()
    this.receiver = receiver
    this.parser.begin(receiver)
    this.isSent = false
    socket.write(text, 'utf8', this.sent)
  }

  private readonly sent = (error?: Error | null): void => {
    this.isSent = true
    if (error == null && !this.parser.isReading && !this.socket.destroyed) this.release()
  }

  /** Waits for the next request. A process that has nothing else to do may end meanwhile. */
  rest(idleMs: number): void {
    this.socket.setTimeout(idleMs)
    this.socket.unref()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.socket.resume()
  }

  leave(): void {
    this.receiver = undefined
    if (!this.parser.isReading) return
    this.parser.redirect(new Rest(this))
    this.socket.setTimeout(this.owner.restMsMax)
    if (this.isPaused) this.resume()
  }

  destroy(): void {
    this.receiver = undefined
    this.closed()
  }

  /** Returns false if no more is to be read for now. */
  private read(length: number): boolean {
    try {
      const used = this.parser.feed(readBuffer, length)
      // If no exchange is under way, the parser takes none of the bytes, and the connection is closed.
      if (!this.parser.isReading && !this.socket.destroyed) this.complete(used === length)
    } catch (error) {
      this.closed(error as Error)
    }
    return !this.isPaused
  }

  private complete(isClean: boolean): void {
    const { receiver } = this
    this.receiver = undefined
    this.isPaused = false
    if (!isClean) this.closed()
    else if (this.isSent) this.release()
    // A server may answer before it has the whole request, and then need not read the rest.
    else this.socket.setTimeout(this.owner.restMsMax)
    receiver?.ended(undefined)
  }

  /** The exchange is over. */
  private release(): void {
    const { usableMs } = this.parser
    if (usableMs > 0) this.owner.keep(this, usableMs)
    else this.closed()
  }

  /** Either side has closed the connection, or it is of no use any more. */
  private closed(error?: Error): void {
    const { receiver } = this
    this.receiver = undefined
    this.owner.remove(this)
    const isComplete = this.parser.endOfConnection()
    this.socket.destroy()
    receiver?.ended(error ?? (isComplete ? undefined : connectionClosed()))
  }
}

/** Reads the rest of a response that its receiver left. */
class Rest {
  private readonly connection: Connection
  private bytes = 0

  constructor(connection: Connection) {
    this.connection = connection
  }

  head(): void {}

  body(_bytes: Buffer, from: number, to: number): void {
    this.bytes += to - from
    if (this.bytes > restBytesMax) this.connection.destroy()
  }
}

/** In the words of Node. */
function connectionClosed(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
}
