// One WebSocket connection to an OpenClaw gateway, after its handshake:
//
//   ◀ connect.challenge   ▶ connect (token, role, scopes, capabilities)   ◀ hello-ok
//
// Afterwards requests and their answers are matched by id, and events go to all listeners.
// A connection that is lost stays lost; gateway-link.ts opens the next one.

import type { Clock, Timer } from '../../kit/clock.ts'
import { type Fields, fieldsOf, type GatewayErrorFields, listOf, readFrame, textOf, wholeOf } from './gateway-frames.ts'

export type GatewayAddress = {
  /** ws: or wss:, without credentials. */
  url: string
  token: string | undefined
  /** The version that this server reports to the gateway. */
  version: string
}

export type GatewayEvent =
  | { type: 'event'; event: string; payload: Fields; seq: number | undefined }
  /** Frames were lost or could not be read, so what the listener knows may be incomplete. */
  | { type: 'gap' }
  | { type: 'lost' }

export interface GatewayConnection {
  /** Changes when the gateway is started again; undefined if the gateway does not say. */
  readonly bootId: string | undefined
  readonly scopes: readonly unknown[]
  /** The largest frame that the gateway accepts, in bytes. */
  readonly payloadMax: number
  readonly isLost: boolean
  /** Throws `GatewayRefusal` if the gateway answers with an error, and `ConnectionLost` if no answer can come any more. */
  request(method: string, params: object, signal: AbortSignal): Promise<unknown>
  /** Returns a function that removes the listener. */
  listen(listener: (event: GatewayEvent) => void): () => void
  close(): void
}

/** The gateway answered a request with an error. */
export class GatewayRefusal extends Error {
  override name = 'GatewayRefusal'
  readonly code: string

  constructor({ code, message }: GatewayErrorFields) {
    super(message === '' ? `the gateway answered with ${code === '' ? 'an error' : code}` : message)
    this.code = code
  }
}

export class ConnectionLost extends Error {
  override name = 'ConnectionLost'
}

/** `socket`: there is no WebSocket at this address, or it was closed before the handshake was done. */
export class ConnectFailure extends Error {
  override name = 'ConnectFailure'
  readonly reason: 'socket' | 'timeout' | 'refused'

  constructor(reason: ConnectFailure['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

const connectTimeoutMs = 10_000
const requestTimeoutMs = 20_000
/** Pending requests of one connection; more mean that the gateway does not answer. */
const pendingMax = 10_000
const tickMsDefault = 30_000
const tickMsMin = 1_000
/** A connection without any frame for this many ticks is dead, although the socket seems to be open. */
const silentTicksMax = 3
const payloadMaxDefault = 25 * 1024 * 1024

// `operator.admin` only lets `chat.send` treat a user's text as text and never as a gateway command, and lets this
// client answer approvals.
const scopes = ['operator.admin', 'operator.read', 'operator.write', 'operator.approvals']
const capabilities = ['tool-events', 'approvals', 'exec-approvals']

type Pending = { resolve(payload: unknown): void; reject(error: Error): void; timer: Timer }

/** Throws `ConnectFailure`, or the signal's reason. */
export function openConnection(address: GatewayAddress, clock: Clock, signal: AbortSignal): Promise<GatewayConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const connection = new Connection(address, clock, (outcome) => {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      if (outcome instanceof Error) {
        connection.close()
        reject(outcome)
      } else resolve(connection)
    })
    const timer = clock.after(connectTimeoutMs, () =>
      connection.fail(
        new ConnectFailure('timeout', `it did not complete its handshake within ${connectTimeoutMs / 1000} s`),
      ),
    )
    const onAbort = () => connection.fail(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

class Connection implements GatewayConnection {
  bootId: string | undefined
  scopes: readonly unknown[] = []
  payloadMax = payloadMaxDefault
  isLost = false
  private readonly address: GatewayAddress
  private readonly clock: Clock
  private readonly socket: WebSocket
  private readonly pending = new Map<string, Pending>()
  private readonly listeners = new Set<(event: GatewayEvent) => void>()
  private settle: ((outcome: Error | undefined) => void) | undefined
  private requests = 0
  private lastSeq: number | undefined
  private heardAt: number
  private tickMs = tickMsDefault
  private silence: Timer | undefined

  constructor(address: GatewayAddress, clock: Clock, settle: (outcome: Error | undefined) => void) {
    this.address = address
    this.clock = clock
    this.settle = settle
    this.heardAt = clock.monotonic()
    this.socket = new WebSocket(address.url)
    this.socket.addEventListener('message', ({ data }) => this.hear(data))
    this.socket.addEventListener('error', () => this.lose('the WebSocket could not be opened, or broke'))
    this.socket.addEventListener('close', ({ code, reason }) =>
      this.lose(`the WebSocket was closed (${code}${reason === '' ? '' : `, ${reason.slice(0, 200)}`})`),
    )
  }

  /** Ends a handshake that is not done. */
  fail(error: Error): void {
    const { settle } = this
    this.settle = undefined
    settle?.(error)
  }

  request(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    if (this.isLost) return Promise.reject(new ConnectionLost('the connection to the gateway is lost'))
    if (this.pending.size >= pendingMax)
      return Promise.reject(new ConnectionLost('the gateway does not answer its requests'))
    const id = String((this.requests += 1))
    return new Promise((resolve, reject) => {
      const done = () => {
        this.pending.delete(id)
        timer.cancel()
        signal.removeEventListener('abort', onAbort)
      }
      const timer = this.clock.after(requestTimeoutMs, () => {
        done()
        reject(new ConnectionLost(`the gateway did not answer ${method} within ${requestTimeoutMs / 1000} s`))
      })
      const onAbort = () => {
        done()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.pending.set(id, {
        timer,
        resolve(payload) {
          done()
          resolve(payload)
        },
        reject(error) {
          done()
          reject(error)
        },
      })
      this.socket.send(JSON.stringify({ type: 'req', id, method, params }))
    })
  }

  listen(listener: (event: GatewayEvent) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  close(): void {
    this.lose('the connection was closed here')
  }

  private lose(reason: string): void {
    if (this.isLost) return
    this.isLost = true
    this.silence?.cancel()
    this.socket.close()
    this.fail(new ConnectFailure('socket', reason))
    for (const { reject } of this.pending.values()) reject(new ConnectionLost(reason))
    this.tell({ type: 'lost' })
  }

  private tell(event: GatewayEvent): void {
    for (const listener of this.listeners) listener(event)
  }

  private hear(data: unknown): void {
    if (this.isLost) return
    this.heardAt = this.clock.monotonic()
    const frame = typeof data === 'string' ? readFrame(data) : undefined
    if (frame === undefined) {
      this.tell({ type: 'gap' })
      return
    }
    if (frame.type === 'res') {
      const pending = this.pending.get(frame.id)
      if (frame.ok) pending?.resolve(frame.payload)
      else pending?.reject(new GatewayRefusal(frame.error))
      return
    }
    if (frame.event === 'connect.challenge') {
      if (this.settle !== undefined && this.requests === 0) void this.shakeHands()
      return
    }
    this.countFrame(frame.seq)
    this.tell(frame)
  }

  /** Frames are numbered per connection, without holes. */
  private countFrame(seq: number | undefined): void {
    if (seq === undefined) return
    if (this.lastSeq !== undefined && seq > this.lastSeq + 1) this.tell({ type: 'gap' })
    if (this.lastSeq === undefined || seq > this.lastSeq) this.lastSeq = seq
  }

  private async shakeHands(): Promise<void> {
    const { token, version } = this.address
    try {
      const params = {
        minProtocol: 4,
        maxProtocol: 4,
        client: { id: 'gateway-client', displayName: 'Polylog', version, platform: process.platform, mode: 'backend' },
        role: 'operator',
        scopes,
        caps: capabilities,
        ...(token === undefined ? {} : { auth: { token } }),
      }
      const hello = fieldsOf(await this.request('connect', params, new AbortController().signal))
      if (hello['type'] !== 'hello-ok' || hello['protocol'] !== 4) {
        this.fail(new ConnectFailure('refused', 'it does not speak version 4 of the gateway protocol'))
        return
      }
      const policy = fieldsOf(hello['policy'])
      this.bootId = textOf(fieldsOf(hello['server'])['bootId']) || undefined
      this.scopes = listOf(fieldsOf(hello['auth'])['scopes'])
      this.payloadMax = wholeOf(policy['maxPayload']) ?? payloadMaxDefault
      this.tickMs = Math.max(wholeOf(policy['tickIntervalMs']) ?? tickMsDefault, tickMsMin)
      this.watchSilence()
      const { settle } = this
      this.settle = undefined
      settle?.(undefined)
    } catch (error) {
      if (error instanceof GatewayRefusal) this.fail(new ConnectFailure('refused', error.message))
      else this.fail(new ConnectFailure('socket', 'the WebSocket was closed during the handshake'))
    }
  }

  /** The gateway sends ticks, so a connection without any frame is half-open. */
  private watchSilence(): void {
    const limitMs = this.tickMs * silentTicksMax
    const quietMs = this.clock.monotonic() - this.heardAt
    if (quietMs >= limitMs) {
      this.lose(`the gateway sent nothing for ${Math.round(limitMs / 1000)} s`)
      return
    }
    this.silence = this.clock.after(limitMs - quietMs, () => this.watchSilence())
  }
}
