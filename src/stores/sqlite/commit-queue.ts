// The main thread's half of writing. At most one batch is with the writer thread at a
// time; commands that arrive meanwhile are queued and sent, in order, as the next batch.
//
//   idle ──command──▶ sent ──reply──▶ idle, or sent again if commands are queued
//
// A batch with a durable command is sent as soon as the writer is free. Deltas alone wait
// until `gatherMs` after the last batch of deltas alone was sent, so that many runs share one
// commit when commits are frequent, and the first delta of a quiet server goes at once. They
// do not wait if the last batch was of one run, because there is nothing to share.
//
// A batch is logged and acknowledged, or executed by the writer (logged-commits.ts). The database executes all commands in
// their order, except that deltas whose results are certain overtake other commands: they need neither a sync nor the
// database, and both may take long.

import { AppError } from '../../errors/app-error.ts'
import type { Timer } from '../../kit/clock.ts'
import { batchCharsMax } from './command-log.ts'
import { CommandResults, noTopics, type ResultOptions } from './command-results.ts'
import {
  type BatchReply,
  type CommandName,
  type Commands,
  deltaMark,
  fromFailure,
  packCommand,
  type WriterMessage,
} from './commands.ts'
import { LoggedCommits, type LogOptions } from './logged-commits.ts'
import { countUpTo, type Pending, type TailRow } from './pending-command.ts'
import { WaitingCommands } from './waiting-commands.ts'
import { type Writer, WriterLink } from './writer-link.ts'

/**
 * So many deltas are written to the log at once, without waiting for others of the same turn of the event loop. A turn of a busy server is
 * long, and its first deltas would be as late as its last ones. More would save little: a record costs less than ten deltas.
 */
const deltasTogether = 64

/** Until the command is queued. */
const noCaller = (): void => {}

export type QueueOptions = ResultOptions & LogOptions & { gatherMs: number }

export class CommitQueue {
  readonly #options: QueueOptions
  readonly #results: CommandResults
  readonly #commits: LoggedCommits
  readonly #opened = Promise.withResolvers<void>()
  #closed: PromiseWithResolvers<boolean> | undefined
  /** Opening the store empties the tail, so ids restart at 1. */
  #nextTailId = 1
  readonly #waiting = new WaitingCommands()
  /** When the last batch without a durable command was sent. */
  #deltasSentAt = Number.NEGATIVE_INFINITY
  /** How many commands it had. A run has one at most. */
  #deltasSent = 0
  #sendScheduled = false
  /** How many deltas came since the last batch was sent. */
  #newDeltas = 0
  #timer: Timer | undefined
  /** Set when the queue accepts no more commands: every later command is rejected with this error. */
  #refusal: AppError | undefined
  /** The writer thread has ended, or could not open the database. */
  #dead = false

  constructor(writer: Writer, options: QueueOptions) {
    this.#options = options
    this.#results = new CommandResults(options)
    this.#commits = new LoggedCommits(new WriterLink(writer), this.#results, options, () => this.#next())
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
  appendDelta(row: TailRow, epoch: number, body: string, durable: boolean): Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const { runId, firstSeq, lastSeq } = row
    const values = [deltaMark, runId, epoch, firstSeq - 1, row.id, lastSeq, body]
    const effect = { type: 'append', runId, epoch, afterSeq: firstSeq - 1, lastSeq, body, releases: false } as const
    const pending: Pending = {
      values,
      durable,
      tailRows: [row],
      effect,
      topics: noTopics,
      facts: undefined,
      isDelta: true,
      resolve: noCaller,
      reject: noCaller,
    }
    return this.#enqueue(pending) as Promise<void>
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
    const values = [name, json, texts.length, ...texts]
    const { effect, topics, facts } = this.#results.queued(name, input)
    const pending: Pending = {
      values,
      durable,
      tailRows,
      effect,
      topics,
      facts,
      isDelta: false,
      resolve: noCaller,
      reject: noCaller,
    }
    return this.#enqueue(pending) as Promise<Commands[Name]['gives']>
  }

  /**
   * Resolves when the reply to the batch that the writer has now, if any, has been handled. Until then other connections may
   * see its rows, but its tail rows are not known here.
   */
  answered(): Promise<void> {
    return this.#commits.answered()
  }

  /** The text of a row of the journal tail that the database does not have yet. */
  loggedBody(tailId: number): string | undefined {
    return this.#commits.unapplied.body(tailId)
  }

  /** True if the database has everything that was acknowledged. */
  get isApplied(): boolean {
    return this.#commits.unapplied.isApplied
  }

  /** A query has found that this is so (see known-facts.ts). Call it in the turn of the query. */
  learn(fact: string): void {
    this.#results.learn(fact)
  }

  /** Whether the run is open on this thread, and the database has all messages before it, also if it does not have the run yet. */
  isHistoryStored(runId: string): boolean {
    return this.#results.isHistoryStored(runId)
  }

  /** True if the database has every row that was acknowledged, or every row about a topic (see `topicsOf`). Deltas change no row. */
  isReadable(about?: string): boolean {
    return this.#commits.unapplied.isReadable(about)
  }

  /** Resolves when the database has the rows that are acknowledged now. Rejects if it cannot be written. */
  readable(about?: string): Promise<void> {
    if (this.isReadable(about)) return Promise.resolve()
    if (this.#refusal !== undefined && this.#closed === undefined) return Promise.reject(this.#refusal)
    return this.#commits.readable(about)
  }

  /** Writes all queued commands, then closes. Resolves with true if the writer is ready for another file. */
  close(): Promise<boolean> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers()
      if (this.#dead) this.#closed.resolve(false)
      else {
        this.#refusal ??= new AppError('store_unavailable', 'The store is closed. Start the server again.')
        if (!this.#commits.isBusy) this.#send()
      }
    }
    return this.#closed.promise
  }

  #enqueue(pending: Pending): Promise<unknown> {
    const { durable, isDelta } = pending
    return new Promise((resolve, reject) => {
      // Every token takes this path, so the command is not copied.
      pending.resolve = resolve
      pending.reject = reject
      this.#waiting.add(pending)
      const { isBusy, letsDeltasPass } = this.#commits
      if (isBusy && (!letsDeltasPass || !isDelta || durable)) return
      this.#sendSoon()
      if (!isDelta || durable) return
      this.#newDeltas += 1
      if (this.#newDeltas < deltasTogether) return
      this.#newDeltas = 0
      this.#sendDeltas()
    })
  }

  /** Call when the writer is free, or when deltas need not wait for it. Commands that arrive in the same turn of the event loop join the batch, at no extra latency. */
  #sendSoon(): void {
    if (this.#sendScheduled) return
    this.#sendScheduled = true
    setImmediate(() => {
      this.#sendScheduled = false
      const { isBusy, letsDeltasPass } = this.#commits
      if (this.#waiting.isEmpty || (isBusy && !letsDeltasPass)) return
      const { clock, gatherMs } = this.#options
      const gather = this.#deltasSent > 1 ? gatherMs : 0
      const isDue = this.#waiting.hasDurable && !isBusy
      const wait = isDue ? 0 : this.#deltasSentAt + gather - clock.monotonic()
      if (wait <= 0) this.#sendNow()
      else {
        this.#timer ??= clock.after(wait, () => {
          this.#timer = undefined
          if (!this.#waiting.isEmpty) this.#sendNow()
        })
      }
    })
  }

  #sendNow(): void {
    if (!this.#commits.isBusy) this.#send()
    else if (this.#commits.letsDeltasPass) this.#sendDeltas()
  }

  #send(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#waiting.isEmpty) {
      if (this.#closed !== undefined) this.#commits.close()
      return
    }
    const batch = this.#takeBatch()
    const durable = batch.some((pending) => pending.durable)
    if (!durable) this.#noteDeltas(batch, this.#options.clock.monotonic())
    this.#commits.start(batch, durable, this.#waiting)
  }

  /**
   * The next commands: as many as one record of the log may hold, or all if the log cannot be used. If the log refused what is too much
   * for one record, the database would get it, which takes longer, so that even more would wait for the next record.
   */
  #takeBatch(): Pending[] {
    if (!this.#commits.mayLog()) return this.#waiting.take()
    // Deltas that are certain wait neither for a sync nor for a command that only the database can execute.
    if (this.#waiting.isMixed) this.#sendDeltas()
    return this.#waiting.take(this.#waiting.countUpTo(batchCharsMax))
  }

  #noteDeltas(batch: readonly Pending[], sentAt: number): void {
    this.#newDeltas = 0
    this.#deltasSentAt = sentAt
    this.#deltasSent = batch.length
  }

  /** Writes the waiting deltas that are certain, in front of all other commands. */
  #sendDeltas(): void {
    if (!this.#commits.mayLogDeltas() || this.#closed !== undefined) return
    const certain = this.#waiting.takeCertainDeltas(this.#results)
    while (certain.length > 0) {
      const count = countUpTo(certain, batchCharsMax)
      const deltas = certain.slice(0, count)
      const sentAt = this.#options.clock.monotonic()
      if (!this.#commits.logDeltas(deltas)) break
      certain.splice(0, count)
      this.#noteDeltas(deltas, sentAt)
    }
    this.#waiting.putBack(certain)
  }

  /** Sends what waits, if no batch is under way. */
  #next(): void {
    if (this.#commits.isBusy) return
    if (this.#closed !== undefined) this.#send()
    else if (!this.#waiting.isEmpty) this.#sendSoon()
  }

  #receive(message: WriterMessage): void {
    switch (message.type) {
      case 'done':
        this.#commits.settle(message)
        break
      case 'failed':
        this.#fail(fromFailure(message.failure), message.applied)
        break
      case 'ready':
        this.#opened.resolve(this.#commits.open(message.log))
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
        this.#commits.closeLog()
        this.#closed?.resolve(!message.isSpent)
        return
    }
    this.#next()
  }

  #fail(error: AppError, applied: BatchReply | undefined): void {
    this.#commits.fail(error, applied)
    if (error.code === 'store_damaged') this.#giveUp(error)
  }

  /** Rejects all queued and later commands, because more writes would make the damage worse. */
  #giveUp(error: AppError): void {
    this.#refusal ??= error
    this.#commits.stopApplying()
    for (const pending of this.#waiting.take()) pending.reject(error)
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
    this.#commits.abandon(this.#waiting.take(), error)
    this.#opened.reject(error)
    this.#closed?.resolve(false)
  }
}
