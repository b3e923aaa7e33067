// The main thread's half of writing. At most one batch is with the writer thread at a
// time; commands that arrive meanwhile are queued and sent, in order, as the next batch.
//
//   idle ──command──▶ sent ──reply──▶ idle, or sent again if commands are queued
//
// A batch with a durable command is sent as soon as the writer is free. Deltas alone wait
// until `gatherMs` after the last batch of deltas alone was sent, so that many runs share one
// commit when commits are frequent, and the first delta of a quiet server goes at once. They
// wait a quarter of that if the last batch was of one run, because there is little to share.

import { Worker } from 'node:worker_threads'
import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import type { RunRow } from '../run-store.ts'
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

/** The row of the journal tail that will hold the events of a command. */
export type TailRow = { runId: string; id: number; firstSeq: number; lastSeq: number }

type Pending = {
  resolve(value: unknown): void
  reject(error: AppError): void
  /** One for each run that the command writes to; undefined if the command has no events for that run. */
  tailRows: readonly (TailRow | undefined)[]
}

export type QueueOptions = {
  gatherMs: number
  clock: Clock
  onError(error: unknown): void
  /** Called after the commit, before the promise of the command resolves. */
  onStored(row: TailRow): void
  /** The events up to `lastSeq` were folded: read them from the journal table, not from the tail. */
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
  /** Opening the store empties the tail, so ids restart at 1. */
  #nextTailId = 1
  #values: (string | number)[] = []
  #waiting: Pending[] = []
  #durable = false
  #sent: Pending[] | undefined
  /** Set while a caller of `answered` waits for the reply to the batch in `#sent`. */
  #answered: PromiseWithResolvers<void> | undefined
  /** When the last batch without a durable command was sent. */
  #deltasSentAt = Number.NEGATIVE_INFINITY
  /** How many commands it had. A run has one at most. */
  #deltasSent = 0
  #sendScheduled = false
  #timer: Timer | undefined
  /** Set when the queue accepts no more commands: every later command is rejected with this error. */
  #refusal: AppError | undefined
  /** The writer thread has ended, or could not open the database. */
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

  /** An append that only adds events and changes no other row. */
  appendDelta(row: TailRow, epoch: number, body: string, durable: boolean): Promise<unknown> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    this.#values.push(deltaMark, row.runId, epoch, row.firstSeq - 1, row.id, row.lastSeq, body)
    return this.#enqueue(durable, [row])
  }

  /** `tailRows`: one if the command has a single result, or one for each entry if the result is a list. */
  run<Name extends CommandName>(
    name: Name,
    input: Commands[Name]['takes'],
    durable = true,
    ...tailRows: (TailRow | undefined)[]
  ): Promise<Commands[Name]['gives']> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const { json, texts } = packCommand(input)
    this.#values.push(name, json, texts.length, ...texts)
    return this.#enqueue(durable, tailRows) as Promise<Commands[Name]['gives']>
  }

  /**
   * Resolves when the reply to the batch that the writer has now, if any, has been handled. Until then other connections may
   * see its rows, but its tail rows are not known here.
   */
  answered(): Promise<void> {
    if (this.#sent === undefined) return Promise.resolve()
    this.#answered ??= Promise.withResolvers()
    return this.#answered.promise
  }

  /** Writes all queued commands, then closes. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers()
      if (this.#dead) this.#closed.resolve()
      else {
        this.#refusal ??= new AppError('store_unavailable', 'The store is closed. Start the server again.')
        if (this.#sent === undefined) this.#send()
      }
    }
    return this.#closed.promise
  }

  #enqueue(durable: boolean, tailRows: Pending['tailRows']): Promise<unknown> {
    if (durable) this.#durable = true
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, tailRows })
      if (this.#sent === undefined) this.#sendSoon()
    })
  }

  /** Call when the writer is free. Commands that arrive in the same turn of the event loop join the batch, at no extra latency. */
  #sendSoon(): void {
    if (this.#sendScheduled) return
    this.#sendScheduled = true
    setImmediate(() => {
      this.#sendScheduled = false
      if (this.#sent !== undefined || this.#waiting.length === 0) return
      const { clock, gatherMs } = this.#options
      const gather = this.#deltasSent > 1 ? gatherMs : gatherMs / 4
      const wait = this.#durable ? 0 : this.#deltasSentAt + gather - clock.monotonic()
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
      if (this.#closed !== undefined) this.#post('close')
      return
    }
    const request: WriterRequest = { durable: this.#durable, values: this.#values }
    this.#sent = this.#waiting
    if (!this.#durable) {
      this.#deltasSentAt = this.#options.clock.monotonic()
      this.#deltasSent = this.#sent.length
    }
    this.#waiting = []
    this.#values = []
    this.#durable = false
    this.#post(request)
  }

  #post(request: WriterRequest): void {
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
        this.#refusal = fromFailure(message.failure)
        this.#dead = true
        this.#opened.reject(this.#refusal)
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
    // Promises settle in the order of the batch, so a caller sees earlier commands settled first.
    for (const [index, pending] of sent.entries()) {
      const failure = failed.get(index)
      if (failure === undefined) {
        const value = values.get(index) ?? null
        // Every delta takes this path, so it uses an index instead of an iterator.
        for (let at = 0; at < pending.tailRows.length; at += 1) {
          const row = pending.tailRows[at]
          const result = Array.isArray(value) ? value[at] : value
          if (row !== undefined && !hasStoredNothing(result)) this.#options.onStored(storedRow(row, result))
        }
        pending.resolve(value)
      } else {
        const error = fromFailure(failure)
        if (error.code === 'store_unavailable') this.#options.onError(error)
        pending.reject(error)
      }
    }
    for (const [runId, lastSeq] of folded) this.#options.onFolded(runId, lastSeq)
    this.#tellAnswered()
  }

  #fail(failure: Failure): void {
    const sent = this.#sent ?? []
    this.#sent = undefined
    const error = fromFailure(failure)
    this.#options.onError(error)
    for (const pending of sent) pending.reject(error)
    this.#tellAnswered()
    if (error.code === 'store_damaged') this.#giveUp(error)
  }

  #tellAnswered(): void {
    this.#answered?.resolve()
    this.#answered = undefined
  }

  /** Rejects all queued and later commands, because more writes would make the damage worse. */
  #giveUp(error: AppError): void {
    this.#refusal ??= error
    const waiting = this.#waiting
    this.#waiting = []
    this.#values = []
    this.#durable = false
    for (const pending of waiting) pending.reject(error)
  }

  /** Called when the thread has ended. After `close` that is expected and not reported. */
  #die(cause: unknown): void {
    this.#timer?.cancel()
    this.#dead = true
    const error = new AppError(
      'store_unavailable',
      'The writer of the database has stopped. Start the server again; what was acknowledged is safe.',
      cause === undefined ? {} : { cause },
    )
    if (this.#refusal === undefined) {
      this.#refusal = error
      this.#options.onError(error)
    }
    const lost = [...(this.#sent ?? []), ...this.#waiting]
    this.#sent = undefined
    this.#waiting = []
    this.#values = []
    for (const pending of lost) pending.reject(error)
    this.#tellAnswered()
    this.#opened.reject(error)
    this.#closed?.resolve()
  }
}

/** The row with the last seq that was stored: an accept that claims its run stores more events than one that does not. */
function storedRow(row: TailRow, result: unknown): TailRow {
  if (typeof result !== 'object' || result === null || !('outcome' in result)) return row
  const { run } = result as { run?: Partial<RunRow> }
  return { ...row, lastSeq: run?.lastSeq ?? row.lastSeq }
}

/** True for a repeated accept, which found its run, and for a change that was refused: their events are not in the tail. */
function hasStoredNothing(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'outcome' in value && value.outcome === 'existing'
}
