// What every bus between nodes does apart from its connection: gathers hints for a few
// milliseconds, sends them as few messages, keeps them while the connection is down, and hands
// the hints of other nodes to the listeners.

import type { Clock, Timer } from '../kit/clock.ts'
import type { BusMeter, ClusterListener } from './cluster-bus.ts'
import { countHints, decodeHints, encodeHints, type Hints } from './hint-message.ts'

/** The minimum time between two sends: short compared to the time between two tokens. */
const gatherMsDefault = 4
/** The first wait after a failed send. Doubles up to `retryMaxMs`. */
const retryMs = 100
const retryMaxMs = 2_000
/** How many hints wait while the connection is down. Receivers check everything after a loss, so more need not be kept. */
const waitingMax = 10_000

export type HintExchangeOptions = {
  /** The id of this node, which marks its messages. */
  node: string
  clock: Clock
  /** Rejects if the message was not sent. */
  send(message: string): Promise<void>
  meter?: BusMeter | undefined
  gatherMs?: number | undefined
}

export class HintExchange {
  readonly #options: HintExchangeOptions
  readonly #listeners: ClusterListener[] = []
  #waiting: Hints = noHints()
  /** When the oldest waiting hint was given. */
  #waitingSince = 0
  #sending: Promise<void> | undefined
  #timer: Timer | undefined
  #sentAt = -Infinity
  #retryMs = retryMs
  #closed = false

  constructor(options: HintExchangeOptions) {
    this.#options = options
  }

  announce(runId: string, seq: number): void {
    const { announced } = this.#waiting
    const known = announced.get(runId)
    if (known === undefined && announced.size >= waitingMax) return
    if (known === undefined || known < seq) announced.set(runId, seq)
    this.#given()
  }

  signal(runId: string | null): void {
    if (this.#waiting.signalled.size < waitingMax) this.#waiting.signalled.add(runId)
    this.#given()
  }

  changed(owner: string): void {
    if (this.#waiting.changed.size < waitingMax) this.#waiting.changed.add(owner)
    this.#given()
  }

  listen(listener: ClusterListener): void {
    this.#listeners.push(listener)
  }

  /** A message has arrived. */
  received(text: string): void {
    const message = decodeHints(text)
    if (message === undefined || message.from === this.#options.node) return
    this.#options.meter?.hintsReceived(countHints(message))
    for (const listener of this.#listeners) {
      for (const runId of message.signalled) listener.signalled(runId)
      for (const [runId, seq] of message.announced) listener.announced(runId, seq, message.at)
      for (const owner of message.changed) listener.changed?.(owner)
    }
  }

  /** The connection is back after a loss. */
  reconnected(): void {
    this.#options.meter?.reconnected()
    this.#retryMs = retryMs
    for (const listener of this.#listeners) listener.missed()
    this.#timer?.cancel()
    this.#timer = undefined
    if (countHints(this.#waiting) > 0) this.#schedule(0)
  }

  /** Sends what is waiting, once; then nothing more is sent. */
  async close(): Promise<void> {
    await this.#sending
    this.#timer?.cancel()
    this.#closed = true
    if (countHints(this.#waiting) > 0) await this.#sendAll()
  }

  #given(): void {
    if (this.#sending !== undefined || this.#timer !== undefined || this.#closed) return
    const { clock, gatherMs = gatherMsDefault } = this.#options
    this.#waitingSince = clock.now()
    this.#schedule(this.#sentAt + gatherMs - clock.monotonic())
  }

  #schedule(waitMs: number): void {
    this.#timer = this.#options.clock.after(Math.max(0, waitMs), () => {
      this.#timer = undefined
      this.#sending = this.#sendAll().finally(() => {
        this.#sending = undefined
        if (countHints(this.#waiting) > 0 && this.#timer === undefined && !this.#closed)
          this.#schedule(this.#options.gatherMs ?? gatherMsDefault)
      })
    })
  }

  async #sendAll(): Promise<void> {
    const { node, clock, meter, send } = this.#options
    const hints = this.#waiting
    const at = this.#waitingSince
    this.#waiting = noHints()
    this.#sentAt = clock.monotonic()
    this.#waitingSince = clock.now()
    try {
      for (const message of encodeHints(node, at, hints)) await send(message)
      meter?.hintsSent(countHints(hints))
      this.#retryMs = retryMs
    } catch {
      // Sent again later, together with newer hints; the adapter reports the lost connection.
      this.#takeBack(hints, at)
      if (this.#closed) return
      this.#schedule(this.#retryMs)
      this.#retryMs = Math.min(this.#retryMs * 2, retryMaxMs)
    }
  }

  #takeBack({ announced, signalled, changed }: Hints, at: number): void {
    this.#waitingSince = at
    for (const [runId, seq] of announced) {
      const known = this.#waiting.announced.get(runId)
      if (known === undefined && this.#waiting.announced.size >= waitingMax) break
      if (known === undefined || known < seq) this.#waiting.announced.set(runId, seq)
    }
    for (const runId of signalled) if (this.#waiting.signalled.size < waitingMax) this.#waiting.signalled.add(runId)
    for (const owner of changed) if (this.#waiting.changed.size < waitingMax) this.#waiting.changed.add(owner)
  }
}

function noHints(): Hints {
  return { announced: new Map(), signalled: new Set(), changed: new Set() }
}
