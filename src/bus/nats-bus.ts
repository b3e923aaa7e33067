// Hints between nodes over a NATS server, for databases without LISTEN and for connection poolers
// that do not carry it. Plain publish and subscribe: nothing is stored there, and the client of
// NATS reconnects by itself.

import { readFileSync } from 'node:fs'
import {
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection,
  type Status,
} from '@nats-io/transport-node'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import type { BusLog, BusMeter, ClusterBus, ClusterListener } from './cluster-bus.ts'
import { HintExchange } from './hint-exchange.ts'

export type NatsBusOptions = {
  /** `nats://user:password@host:port/subject`; see `natsAddress`. */
  url: string
  /** The id of this node. */
  node: string
  clock: Clock
  log: BusLog
  meter?: BusMeter
  gatherMs?: number
}

const portDefault = '4222'
const subjectDefault = 'polylog'
/** How long the first connection may take. */
const connectMs = 5_000
const reconnectMs = 250
/** A connection that does not answer two of these is given up. */
const pingMs = 10_000

/**
 * What the URL says: the server; `tls:` instead of `nats:` for an encrypted connection; user and password, or a token
 * alone; as path the subject, so that several clusters can share a server; as query `ca`, `cert` and `key` (files for the
 * encrypted connection) and `credentials` (a file with a JWT and its key).
 */
export function natsAddress(url: string): { subject: string; connection: ConnectionOptions } {
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url)
  const subject = decodeURIComponent(pathname.slice(1)) || subjectDefault
  const file = (name: string) => searchParams.get(name) ?? undefined
  const [ca, cert, key, credentials] = ['ca', 'cert', 'key', 'credentials'].map(file)
  const isEncrypted = protocol === 'tls:' || ca !== undefined || cert !== undefined
  return {
    subject: `${subject}.hints`,
    connection: {
      servers: `${hostname}:${port === '' ? portDefault : port}`,
      ...loginOf(decodeURIComponent(username), decodeURIComponent(password)),
      ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(readFileSync(credentials)) }),
      ...(isEncrypted
        ? {
            tls: {
              ...(ca === undefined ? {} : { caFile: ca }),
              ...(cert === undefined ? {} : { certFile: cert }),
              ...(key === undefined ? {} : { keyFile: key }),
            },
          }
        : {}),
    },
  }
}

function loginOf(user: string, pass: string): Pick<ConnectionOptions, 'user' | 'pass' | 'token'> {
  if (user === '') return {}
  return pass === '' ? { token: user } : { user, pass }
}

/** Throws `config_invalid` if the server cannot be reached. */
export async function openNatsBus(options: NatsBusOptions): Promise<ClusterBus> {
  try {
    const { subject, connection } = natsAddress(options.url)
    const nats = await connect({
      ...connection,
      name: `polylog ${options.node}`,
      noEcho: true,
      timeout: connectMs,
      pingInterval: pingMs,
      maxReconnectAttempts: -1,
      reconnectTimeWait: reconnectMs,
      // A login that is refused for a moment, while the server reloads its users, must not end the bus.
      ignoreAuthErrorAbort: true,
    })
    const bus = new NatsBus(nats, subject, options)
    // The server has the subscription when it answers.
    await nats.flush()
    return bus
  } catch (error) {
    throw new AppError(
      'config_invalid',
      `The NATS server of POLYLOG_BUS cannot be used: ${(error as Error).message}. Start it, or correct the URL.`,
      { cause: error },
    )
  }
}

class NatsBus implements ClusterBus {
  readonly #nats: NatsConnection
  readonly #subject: string
  readonly #log: BusLog
  readonly #exchange: HintExchange
  #isConnected = true

  constructor(nats: NatsConnection, subject: string, { node, clock, log, meter, gatherMs }: NatsBusOptions) {
    this.#nats = nats
    this.#subject = subject
    this.#log = log
    this.#exchange = new HintExchange({ node, clock, meter, gatherMs, send: async (message) => this.#send(message) })
    nats.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#exchange.received(message.string())
      },
    })
    void this.#watch()
  }

  announce(runId: string, seq: number): void {
    this.#exchange.announce(runId, seq)
  }

  signal(runId: string | null): void {
    this.#exchange.signal(runId)
  }

  changed(owner: string): void {
    this.#exchange.changed(owner)
  }

  listen(listener: ClusterListener): void {
    this.#exchange.listen(listener)
  }

  async close(): Promise<void> {
    await this.#exchange.close()
    // Draining needs the server; without it there is nothing to wait for.
    await (this.#isConnected ? this.#nats.drain() : this.#nats.close()).catch(() => {})
  }

  /** While the server is away the client would keep every message; the exchange keeps only the newest hints. */
  #send(message: string): void {
    if (!this.#isConnected) throw new Error('the bus is not connected')
    this.#nats.publish(this.#subject, message)
  }

  async #watch(): Promise<void> {
    for await (const status of this.#nats.status()) this.#changed(status)
  }

  #changed({ type }: Status): void {
    if (type === 'disconnect' && this.#isConnected) {
      this.#isConnected = false
      this.#log.warn({}, 'the bus lost its connection to NATS; other nodes are heard later')
    } else if (type === 'reconnect') {
      this.#isConnected = true
      this.#log.info({}, 'the bus is connected to NATS')
      this.#exchange.reconnected()
    }
  }
}
