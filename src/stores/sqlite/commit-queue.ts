// The main thread's half of writing: commands queue up while a batch is with the
// writer, and go together as the next batch, in their order.
//
//   idle ──command──▶ sent ──reply──▶ idle, or sent again with what has queued
//
// A durable command goes as soon as the writer is free. Deltas wait until
// `gatherMs` after the last batch went, so that those of many runs share a commit.

import { Worker } from 'node:worker_threads'
import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import {
  type BatchReply,
  type CommandName,
  type Commands,
  deltaMark,
  type Failure,
  fromFailure,
  packCommand,
  type WriterMessage,
  type WriterRequest,
} from './commands.ts'

export type Writer = Pick<Worker, 'on' | 'postMessage'>

/** Where in the tail the events of a command will be found. */
export type Place = { runId: string; id: number; firstSeq: number; lastSeq: number }

type Pending = {
  resolve(value: unknown): void
  reject(error: AppError): void
  /** One for each run whose events the command holds; undefined where that run has none. */
  places: readonly (Place | undefined)[]
}

export type QueueOptions = {
  gatherMs: number
  clock: Clock
  onError(error: unknown): void
  /** Before the promise of the command resolves. */
  onStored(place: Place): void
  /** The events up to `lastSeq` are no longer read from the tail. */
  onFolded(runId: string, lastSeq: number): void
}

export function startWriter(file: string): Worker {
  return new Worker(new URL('./writer-worker.ts', import.meta.url), {
    workerData: { file },
    name: 'polylog-sqlite-writer',
  })
}

export class CommitQueue {
  readonly #writer: Writer
  readonly #options: QueueOptions
  readonly #opened = Promise.withResolvers<void>()
  #closed: PromiseWithResolvers<void> | undefined
  /** The tail is empty after opening, so its ids start again. */
  #nextTailId = 1
  #values: (string | number)[] = []
  #waiting: Pending[] = []
  #durable = false
  #sent: Pending[] | undefined
  #sentAt = Number.NEGATIVE_INFINITY
  #soon = false
  #timer: Timer | undefined
  /** Set once nothing can be written any more. */
  #gone: AppError | undefined
  /** The thread has ended, or never came to work. */
  #dead = false

  constructor(writer: Writer, options: QueueOptions) {
    this.#writer = writer
    this.#options = options
    writer.on('message', (message: WriterMessage) => this.#receive(message))
    writer.on('error', (error) => this.#die(error))
    writer.on('exit', () => this.#die(undefined))
  }

  /** Resolves when the database is open, migrated and recovered. */
  opened(): Promise<void> {
    return this.#opened.promise
  }

  tailId(): number {
    return this.#nextTailId++
  }

  /** An append that changes no row. */
  appendDelta(place: Place, epoch: number, body: string, durable: boolean): Promise<unknown> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone)
    this.#values.push(deltaMark, place.runId, epoch, place.firstSeq - 1, place.id, place.lastSeq, body)
    return this.#enqueue(durable, [place])
  }

  /** `places`: one for a single result, or one for each of a list of results. */
  run<Name extends CommandName>(
    name: Name,
    input: Commands[Name]['takes'],
    durable = true,
    ...places: (Place | undefined)[]
  ): Promise<Commands[Name]['gives']> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone)
    const { json, texts } = packCommand(input)
    this.#values.push(name, json, texts.length, ...texts)
    return this.#enqueue(durable, places) as Promise<Commands[Name]['gives']>
  }

  /** Everything that was asked for before is written first. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers()
      if (this.#dead) this.#closed.resolve()
      else {
        this.#gone ??= new AppError('store_unavailable', 'The store is closed. Start the server again.')
        if (this.#sent === undefined) this.#send()
      }
    }
    return this.#closed.promise
  }

  #enqueue(durable: boolean, places: Pending['places']): Promise<unknown> {
    if (durable) this.#durable = true
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, places })
      if (this.#sent === undefined) this.#sendSoon()
    })
  }

  /** The writer is free. What comes in during this turn of the event loop still goes along: that costs nobody time. */
  #sendSoon(): void {
    if (this.#soon) return
    this.#soon = true
    setImmediate(() => {
      this.#soon = false
      if (this.#sent !== undefined || this.#waiting.length === 0) return
      const { clock, gatherMs } = this.#options
      const wait = this.#durable ? 0 : this.#sentAt + gatherMs - clock.monotonic()
      if (wait <= 0) this.#send()
      else {
        this.#timer ??= clock.after(wait, () => {
          this.#timer = undefined
          if (this.#sent === undefined && this.#waiting.length > 0) this.#send()
        })
      }
    })
  }

  #send(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#waiting.length === 0) {
      if (this.#closed !== undefined) this.#say('close')
      return
    }
    const request: WriterRequest = { durable: this.#durable, values: this.#values }
    this.#sent = this.#waiting
    this.#sentAt = this.#options.clock.monotonic()
    this.#waiting = []
    this.#values = []
    this.#durable = false
    this.#say(request)
  }

  #say(request: WriterRequest): void {
    this.#writer.postMessage(request)
  }

  #receive(message: WriterMessage): void {
    switch (message.type) {
      case 'done':
        this.#settle(message)
        break
      case 'failed':
        this.#fail(message.failure)
        break
      case 'ready':
        this.#opened.resolve()
        return
      case 'refused':
        this.#gone = fromFailure(message.failure)
        this.#dead = true
        this.#opened.reject(this.#gone)
        return
      case 'trouble':
        this.#options.onError(fromFailure(message.failure))
        return
      case 'closed':
        this.#closed?.resolve()
        return
    }
    if (this.#closed !== undefined) this.#send()
    else if (this.#waiting.length > 0) this.#sendSoon()
  }

  #settle({ failures, results, folded }: BatchReply): void {
    const sent = this.#sent ?? []
    this.#sent = undefined
    const values = new Map(results)
    const failed = new Map(failures)
    // In the order of the batch: whoever waits sees earlier commands settled first.
    for (const [index, pending] of sent.entries()) {
      const failure = failed.get(index)
      if (failure === undefined) {
        const value = values.get(index) ?? null
        // The path of every delta: no iterator, one place.
        for (let at = 0; at < pending.places.length; at += 1) {
          const place = pending.places[at]
          const stored = Array.isArray(value) ? value[at] : value
          if (place !== undefined && !isExisting(stored)) this.#options.onStored(place)
        }
        pending.resolve(value)
      } else {
        const error = fromFailure(failure)
        if (error.code === 'store_unavailable') this.#options.onError(error)
        pending.reject(error)
      }
    }
    for (const [runId, lastSeq] of folded) this.#options.onFolded(runId, lastSeq)
  }

  #fail(failure: Failure): void {
    const sent = this.#sent ?? []
    this.#sent = undefined
    const error = fromFailure(failure)
    this.#options.onError(error)
    for (const pending of sent) pending.reject(error)
    if (error.code === 'store_damaged') this.#giveUp(error)
  }

  /** Writing on would make the damage worse. What waits is refused, and so is everything after it. */
  #giveUp(error: AppError): void {
    this.#gone ??= error
    const waiting = this.#waiting
    this.#waiting = []
    this.#values = []
    this.#durable = false
    for (const pending of waiting) pending.reject(error)
  }

  /** The thread has ended. After a close that is how it should be. */
  #die(cause: unknown): void {
    this.#timer?.cancel()
    this.#dead = true
    const error = new AppError(
      'store_unavailable',
      'The writer of the database has stopped. Start the server again; what was acknowledged is safe.',
      cause === undefined ? {} : { cause },
    )
    if (this.#gone === undefined) {
      this.#gone = error
      this.#options.onError(error)
    }
    const lost = [...(this.#sent ?? []), ...this.#waiting]
    this.#sent = undefined
    this.#waiting = []
    this.#values = []
    for (const pending of lost) pending.reject(error)
    this.#opened.reject(error)
    this.#closed?.resolve()
  }
}

/** A repeated accept finds its run and stores nothing. */
function isExisting(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'outcome' in value && value.outcome === 'existing'
}
