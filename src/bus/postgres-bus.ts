// Hints between nodes over LISTEN and NOTIFY of the shared database. One connection of its own
// does both, so hints do not wait for the store's connections. It is checked now and then by a
// message to itself, because a connection can be dead without an error, and because some
// connection poolers accept LISTEN and deliver nothing.

import { Client } from 'pg'
import { AppError } from '../errors/app-error.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import type { BusLog, BusMeter, ClusterBus, ClusterListener } from './cluster-bus.ts'
import { HintExchange } from './hint-exchange.ts'

const channel = 'polylog_hints'

/** How often the connection is checked, and how long the check may take. */
const checkMs = 10_000
const checkAnswerMs = 5_000
/** The first wait before a new connection. Doubles up to `reconnectMaxMs`. */
const reconnectMs = 100
const reconnectMaxMs = 5_000

export type PostgresBusOptions = {
  url: string
  /** The id of this node. */
  node: string
  clock: Clock
  log: BusLog
  meter?: BusMeter
  gatherMs?: number
}

/** Throws `config_invalid` if the database takes LISTEN but delivers nothing. */
export async function openPostgresBus(options: PostgresBusOptions): Promise<ClusterBus> {
  const bus = new PostgresBus(options)
  await bus.open()
  return bus
}

class PostgresBus implements ClusterBus {
  readonly #options: PostgresBusOptions
  readonly #exchange: HintExchange
  /** The connection that is listening, if there is one. */
  #client: Client | undefined
  #timer: Timer | undefined
  #waitMs = reconnectMs
  #checks = 0
  #checked: (() => void) | undefined
  #closed = false

  constructor(options: PostgresBusOptions) {
    this.#options = options
    const { node, clock, meter, gatherMs } = options
    this.#exchange = new HintExchange({ node, clock, meter, gatherMs, send: (message) => this.#send(message) })
  }

  async open(): Promise<void> {
    try {
      await this.#connect()
    } catch (error) {
      if (error instanceof AppError) {
        await this.close()
        throw error
      }
      this.#lost(undefined, error)
    }
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
    if (this.#closed) return
    await this.#exchange.close()
    this.#closed = true
    this.#timer?.cancel()
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => {})
  }

  async #send(message: string): Promise<void> {
    if (this.#client === undefined) throw new Error('the bus is not connected')
    await this.#notify(this.#client, message)
  }

  async #notify(client: Client, message: string): Promise<void> {
    await client.query({ name: 'hint', text: 'SELECT pg_notify($1, $2)', values: [channel, message] })
  }

  async #connect(): Promise<void> {
    const client = new Client({
      connectionString: this.#options.url,
      connectionTimeoutMillis: checkAnswerMs,
      query_timeout: checkAnswerMs,
      keepAlive: true,
      application_name: 'polylog bus',
    })
    client.on('error', (error) => this.#lost(client, error))
    client.on('end', () => this.#lost(client, undefined))
    client.on('notification', ({ payload = '' }) => this.#heard(payload))
    try {
      await client.connect()
      // A hint need not be on disk.
      await client.query('SET synchronous_commit = off')
      await client.query(`LISTEN ${channel}`)
      if (!(await this.#check(client))) throw deaf()
    } catch (error) {
      void client.end().catch(() => {})
      throw error
    }
    if (this.#closed) return void client.end().catch(() => {})
    this.#client = client
    this.#waitMs = reconnectMs
    this.#armCheck(client)
  }

  /** Whether a message of this node comes back to it. */
  async #check(client: Client): Promise<boolean> {
    this.#checks += 1
    return await new Promise<boolean>((resolve, reject) => {
      const timer = this.#options.clock.after(checkAnswerMs, () => resolve(false))
      this.#checked = () => {
        timer.cancel()
        resolve(true)
      }
      // Not awaited: on a dead connection it takes long to fail.
      this.#notify(client, this.#checkMessage()).catch((error: unknown) => {
        timer.cancel()
        reject(error)
      })
    })
  }

  #checkMessage(): string {
    return `check ${this.#options.node} ${this.#checks}`
  }

  #heard(message: string): void {
    if (message === this.#checkMessage()) this.#checked?.()
    else this.#exchange.received(message)
  }

  #armCheck(client: Client): void {
    this.#timer = this.#options.clock.after(checkMs, () => {
      this.#check(client).then(
        (answered) => {
          if (this.#client !== client) return
          if (answered) this.#armCheck(client)
          else this.#lost(client, new Error('a check was not answered in time'))
        },
        (error: unknown) => this.#lost(client, error),
      )
    })
  }

  /** `client` is undefined if no connection could be made. */
  #lost(client: Client | undefined, error: unknown): void {
    if (this.#closed || client !== this.#client) return
    if (client !== undefined) {
      this.#options.log.warn({ err: error }, 'the bus lost its connection to PostgreSQL; other nodes are heard later')
      // Not awaited: a dead connection may not answer.
      void client.end().catch(() => {})
    }
    this.#client = undefined
    this.#timer?.cancel()
    const waitMs = this.#waitMs
    this.#waitMs = Math.min(waitMs * 2, reconnectMaxMs)
    this.#timer = this.#options.clock.after(waitMs, () => void this.#reconnect())
  }

  async #reconnect(): Promise<void> {
    try {
      await this.#connect()
    } catch (error) {
      this.#lost(undefined, error)
      return
    }
    if (this.#closed) return
    this.#options.log.info({}, 'the bus is connected to PostgreSQL')
    this.#exchange.reconnected()
  }
}

function deaf(): AppError {
  return new AppError(
    'config_invalid',
    'The database takes LISTEN but delivers no notifications: probably a connection pooler stands in between. Let POLYLOG_DATABASE_URL lead to PostgreSQL directly or in session mode, or set POLYLOG_BUS to the URL of a NATS server.',
  )
}
