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
// A batch whose results are all certain (hot-commands.ts) is written to the log and acknowledged; the writer gets its
// commands later, with those of other batches. They are in front of the next batch that does need the writer, so that the
// database executes all commands in their order, except that deltas whose results are certain overtake other commands: they
// need neither a sync nor the database, and both may take long.

import type { Worker } from 'node:worker_threads'
import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import { batchCharsMax, type CommandLog } from './command-log.ts'
import {
  type BatchReply,
  type CommandBatch,
  type CommandName,
  type Commands,
  deltaMark,
  type Failure,
  fromFailure,
  type LogState,
  packCommand,
  type WriterMessage,
  type WriterRequest,
} from './commands.ts'
import { changedFacts, KnownRuns, runEffect, type RunEffect, topicsOf } from './hot-commands.ts'
import { KnownFacts } from './known-facts.ts'
import { joinRecords } from './log-record.ts'
import { type LoggedBatch, LoggedBatches } from './logged-batches.ts'
import {
  accepted,
  countUpTo,
  hasStoredNothing,
  isPlainDelta,
  leavesOtherRuns,
  loggedBatch,
  type Pending,
  storedRow,
  type TailRow,
  valuesOf,
} from './pending-command.ts'

export type Writer = Pick<Worker, 'on' | 'postMessage'>

/** What the writer is working on: a batch, if any, after batches from the log. */
type Posted = { batch: Pending[] | undefined; logged: LoggedBatch[]; synced: boolean }

/** Commands of one record of the log. */
type LoggedPart = { batch: readonly Pending[]; logged: LoggedBatch }

const none: readonly string[] = []
const nothingPosted: Posted = { batch: undefined, logged: [], synced: false }

/**
 * How long a command may be in the log before it is sent to the database. The commands of this time share a transaction, and the deltas of a
 * run share a row.
 */
export const applyMs = 500
/** These bound the time that the writer needs for them, and that a read waits for it. */
const unappliedMax = 20_000
const unappliedChangesMax = 500
/**
 * So many deltas are written to the log at once, without waiting for others of the same turn of the event loop. A turn of a busy server is
 * long, and its first deltas would be as late as its last ones. More would save little: a record costs less than ten deltas.
 */
const deltasTogether = 64
/** How long to wait after the database could not be written. */
const applyRetryMs = 500

export type QueueOptions = {
  gatherMs: number
  clock: Clock
  onError(error: unknown): void
  /** Called after the commit, before the promise of the command resolves. The database has the row, or `loggedBody` has its text. */
  onStored(row: TailRow): void
  /** The writer has stored the events from `firstSeq` to `lastSeq` in this one row. `onStored` was called for each of their appends. */
  onMerged?(row: TailRow): void
  /** The events up to `lastSeq` were folded: read them from the journal table, not from the tail. */
  onFolded(runId: string, lastSeq: number): void
  /** Opens the log; undefined if there is to be none. Called when the database is open. */
  openLog?(state: LogState): CommandLog | undefined
  /** Asked before each batch that could be logged. */
  mayLog?(): boolean
}

export class CommitQueue {
  readonly #writer: Writer
  readonly #options: QueueOptions
  readonly #opened = Promise.withResolvers<void>()
  #closed: PromiseWithResolvers<boolean> | undefined
  /** Opening the store empties the tail, so ids restart at 1. */
  #nextTailId = 1
  #waiting: Pending[] = []
  #durable = false
  /** The batch that is with the writer or being logged. */
  #sent: Pending[] | undefined
  /**
   * Deltas may be logged and acknowledged before that batch is: it is written to the log, which syncs it, or it is with the writer and
   * leaves their runs alone.
   */
  #letsDeltasPass = false
  /** What the writer has, in order. It has at most one batch. */
  readonly #posted: Posted[] = []
  readonly #known = new KnownRuns()
  readonly #facts = new KnownFacts()
  #log: CommandLog | undefined
  readonly #unapplied = new LoggedBatches()
  #applyTimer: Timer | undefined
  /** The last batch for the database failed. Nothing is logged until one succeeds. */
  #isBlocked = false
  /**
   * The database has a batch that a power cut may lose. A synced record of the log could not be executed without it, so nothing is
   * logged before a synced batch has followed. The next batch that could be logged is that one.
   */
  #isUnsynced = false
  /** The log could not be written, and is not used any more. */
  #isLogBroken = false
  #isClosePosted = false
  /** Set while a caller of `answered` waits for the reply to the batch in `#sent`. */
  #answered: PromiseWithResolvers<void> | undefined
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
  appendDelta(row: TailRow, epoch: number, body: string, durable: boolean): Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const { runId, firstSeq, lastSeq } = row
    const values = [deltaMark, runId, epoch, firstSeq - 1, row.id, lastSeq, body]
    const effect = { type: 'append', runId, epoch, afterSeq: firstSeq - 1, lastSeq, body, releases: false } as const
    const pending = { values, durable, tailRows: [row], effect, topics: none, facts: undefined, isDelta: true }
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
    const effect = runEffect(name, input, (fact) => this.#facts.holds(fact))
    const topics = effect === undefined ? none : topicsOf(name, input, this.#known)
    const facts = changedFacts(name, input)
    // After its own effect is known, which may depend on what is true until now.
    if (facts !== undefined) this.#facts.queued(facts)
    const pending = { values, durable, tailRows, effect, topics, facts, isDelta: false }
    return this.#enqueue(pending) as Promise<Commands[Name]['gives']>
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

  /** The text of a row of the journal tail that the database does not have yet. */
  loggedBody(tailId: number): string | undefined {
    return this.#unapplied.body(tailId)
  }

  /** True if the database has everything that was acknowledged. */
  get isApplied(): boolean {
    return this.#unapplied.isApplied
  }

  /** A query has found that this is so (see known-facts.ts). Call it in the turn of the query. */
  learn(fact: string): void {
    this.#facts.lookedUp(fact)
  }

  /** Whether the run is open on this thread, and the database has all messages before it, also if it does not have the run yet. */
  isHistoryStored(runId: string): boolean {
    return this.#known.get(runId)?.isHistoryStored === true
  }

  /** True if the database has every row that was acknowledged, or every row about a topic (see `topicsOf`). Deltas change no row. */
  isReadable(about?: string): boolean {
    return this.#unapplied.isReadable(about)
  }

  /** Resolves when the database has the rows that are acknowledged now. Rejects if it cannot be written. */
  readable(about?: string): Promise<void> {
    if (this.isReadable(about)) return Promise.resolve()
    if (this.#refusal !== undefined && this.#closed === undefined) return Promise.reject(this.#refusal)
    const readable = this.#unapplied.readable(about)
    this.#apply()
    return readable
  }

  /** Writes all queued commands, then closes. Resolves with true if the writer is ready for another file. */
  close(): Promise<boolean> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers()
      if (this.#dead) this.#closed.resolve(false)
      else {
        this.#refusal ??= new AppError('store_unavailable', 'The store is closed. Start the server again.')
        if (this.#sent === undefined) this.#send()
      }
    }
    return this.#closed.promise
  }

  #enqueue(command: Omit<Pending, 'resolve' | 'reject'>): Promise<unknown> {
    const { values, durable, tailRows, effect, topics, facts, isDelta } = command
    if (durable) this.#durable = true
    return new Promise((resolve, reject) => {
      this.#waiting.push({ values, resolve, reject, tailRows, effect, topics, facts, isDelta, durable })
      if (this.#sent !== undefined && (!this.#letsDeltasPass || !isDelta || durable)) return
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
      if (this.#waiting.length === 0 || (this.#sent !== undefined && !this.#letsDeltasPass)) return
      const { clock, gatherMs } = this.#options
      const gather = this.#deltasSent > 1 ? gatherMs : 0
      const isDue = this.#durable && this.#sent === undefined
      const wait = isDue ? 0 : this.#deltasSentAt + gather - clock.monotonic()
      if (wait <= 0) this.#sendNow()
      else {
        this.#timer ??= clock.after(wait, () => {
          this.#timer = undefined
          if (this.#waiting.length > 0) this.#sendNow()
        })
      }
    })
  }

  #sendNow(): void {
    if (this.#sent === undefined) this.#send()
    else if (this.#letsDeltasPass) this.#sendDeltas()
  }

  #send(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#waiting.length === 0) {
      if (this.#closed !== undefined) this.#postClose()
      return
    }
    const batch = this.#takeBatch()
    const durable = batch.some((pending) => pending.durable)
    this.#sent = batch
    if (!durable) this.#noteDeltas(batch)
    const values = valuesOf(batch)
    const record = this.#recordOf(batch, values)
    if (record === undefined || this.#log === undefined) this.#post(batch, values, durable)
    else if (this.#isUnsynced) this.#post(batch, values, true)
    else if (durable && !this.#log.isSlow) this.#appendSynced(this.#log, record, batch)
    else this.#append(this.#log, record, batch, durable)
  }

  /**
   * The next commands: as many as one record of the log may hold, or all if the log cannot be used. If the log refused what is too much
   * for one record, the database would get it, which takes longer, so that even more would wait for the next record.
   */
  #takeBatch(): Pending[] {
    if (!this.#mayLog()) return this.#takeWaiting(this.#waiting.length)
    // Deltas that are certain wait neither for a sync nor for a command that only the database can execute.
    if (this.#waiting.length > 1 && this.#waiting.some((pending) => !isPlainDelta(pending))) this.#sendDeltas()
    return this.#takeWaiting(countUpTo(this.#waiting, batchCharsMax))
  }

  #takeWaiting(count: number): Pending[] {
    const batch = this.#waiting
    this.#waiting = batch.splice(count)
    this.#durable = this.#waiting.some(({ durable }) => durable)
    return batch
  }

  #mayLog(): boolean {
    return this.#log !== undefined && !this.#isBlocked && this.#options.mayLog?.() !== false
  }

  #noteDeltas(batch: readonly Pending[]): void {
    this.#newDeltas = 0
    this.#deltasSentAt = this.#options.clock.monotonic()
    this.#deltasSent = batch.length
  }

  /** Writes the waiting deltas that are certain, in front of all other commands. */
  #sendDeltas(): void {
    const log = this.#log
    if (log === undefined || !this.#mayLog() || this.#isUnsynced || this.#closed !== undefined) return
    const [certain, others] = this.#waitingDeltas()
    this.#waiting = others
    // A slow log writes in other threads, where one record could overtake another.
    while (certain.length > 0 && !log.isSlow && !this.#isBlocked) {
      const count = countUpTo(certain, batchCharsMax)
      const deltas = certain.slice(0, count)
      const record = log.record(valuesOf(deltas), this.#unapplied.applied)
      if (record === undefined) break
      certain.splice(0, count)
      this.#noteDeltas(deltas)
      for (const { effect } of deltas) this.#known.foresee(effect as RunEffect)
      this.#append(log, record, deltas, false)
    }
    if (certain.length > 0) this.#waiting = [...certain, ...this.#waiting]
  }

  /** The waiting deltas that are certain to succeed, and all other commands. A delta that follows a waiting command of its run is not certain. */
  #waitingDeltas(): [deltas: Pending[], others: Pending[]] {
    const deltas: Pending[] = []
    const others: Pending[] = []
    for (const pending of this.#waiting) {
      const { effect } = pending
      if (isPlainDelta(pending) && effect?.type === 'append' && this.#known.isCertain(effect)) deltas.push(pending)
      else others.push(pending)
    }
    return [deltas, others]
  }

  /** The record of the batch for the log. Undefined if not all its results are certain, or if there is no room. */
  #recordOf(batch: readonly Pending[], values: CommandBatch['values']): Buffer | undefined {
    const log = this.#log
    if (log === undefined || !this.#mayLog()) return undefined
    if (batch.some(({ effect }) => effect === undefined)) return undefined
    const record = log.record(values, this.#unapplied.applied)
    if (record === undefined) {
      this.#apply()
      return undefined
    }
    // A command that is not certain may follow others that count as executed now. The writer then says what became of all of them.
    return batch.every(({ effect }) => this.#known.foresee(effect as RunEffect)) ? record : undefined
  }

  #append(log: CommandLog, record: Buffer, batch: readonly Pending[], durable: boolean): void {
    const part = this.#partOf(log, batch, record)
    log.append(record, durable, (error) => this.#appended([part], error))
  }

  /**
   * Writes the batch, and after it those waiting commands that can be logged too, each as many as fit into a record, so that all of them
   * share a sync: when many runs end at once, it takes longer than the writes.
   */
  #appendSynced(log: CommandLog, first: Buffer, batch: Pending[]): void {
    const parts: LoggedPart[] = []
    const write = (record: Buffer, part: LoggedPart): Error | null => {
      let failed: Error | null = null
      parts.push(part)
      // It is written at once, because the log is not slow.
      log.append(record, false, (error) => (failed = error))
      return failed
    }
    let failure = write(first, this.#partOf(log, batch, first))
    while (failure === null && this.#waiting.length > 0 && !log.isSlow) {
      const next = this.#waiting.slice(0, countUpTo(this.#waiting, batchCharsMax))
      const record = this.#recordOf(next, valuesOf(next))
      if (record === undefined) break
      this.#takeWaiting(next.length)
      failure = write(record, this.#partOf(log, next, record))
    }
    if (failure !== null) return this.#appended(parts, failure)
    this.#letsDeltasPass = true
    log.sync((error) => {
      this.#letsDeltasPass = false
      this.#appended(parts, error)
    })
  }

  #partOf(log: CommandLog, batch: readonly Pending[], record: Buffer): LoggedPart {
    const logged = loggedBatch(log.number + 1, batch, record)
    this.#unapplied.add(logged)
    return { batch, logged }
  }

  /** The parts are written, and synced if they need it, or all of them failed. */
  #appended(parts: readonly LoggedPart[], error: Error | null): void {
    if (parts.some(({ batch }) => batch === this.#sent)) this.#sent = undefined
    if (error !== null) this.#logFailed(error, parts)
    else this.#acknowledge(parts)
  }

  #acknowledge(parts: readonly LoggedPart[]): void {
    for (const { batch, logged } of parts) {
      this.#unapplied.acknowledge(logged)
      for (const { effect, tailRows, resolve } of batch) {
        const value = effect?.type === 'accept' ? accepted(effect) : null
        const [row] = tailRows
        if (row !== undefined) this.#options.onStored(storedRow(row, value))
        resolve(value)
      }
    }
    if (this.#sent === undefined) this.#tellAnswered()
    const { commands, changes } = this.#unapplied
    const isMuch = commands > unappliedMax || changes > unappliedChangesMax
    if (isMuch || this.#log?.isHalfFull === true) this.#apply()
    this.#applyAfter(applyMs)
    this.#next()
  }

  /** The record may be torn or not be synced, so the log is not used any more. What it holds is applied as usual. */
  #logFailed(cause: Error, parts: readonly LoggedPart[]): void {
    const error = new AppError('store_unavailable', 'The log of the database could not be written. Check the disk.', {
      cause,
    })
    this.#options.onError(error)
    this.#isBlocked = true
    this.#isLogBroken = true
    for (const { batch, logged } of parts) {
      this.#unapplied.drop(logged)
      for (const { effect, reject } of batch) {
        if (effect !== undefined) this.#known.forget(effect)
        reject(error)
      }
    }
    if (this.#sent === undefined) this.#tellAnswered()
    this.#apply()
    this.#next()
  }

  #applyAfter(ms: number): void {
    this.#applyTimer ??= this.#options.clock.after(ms, () => {
      this.#applyTimer = undefined
      this.#apply()
    })
  }

  /** Sends what only the log has to the writer. */
  #apply(): void {
    if (this.#posted.some(({ logged }) => logged.length > 0)) return
    const logged = this.#takeUnapplied()
    if (logged.length > 0) this.#post(undefined, [], true, logged)
  }

  #takeUnapplied(): LoggedBatch[] {
    this.#applyTimer?.cancel()
    this.#applyTimer = undefined
    return this.#unapplied.take()
  }

  /** Sends what only the log has to the writer, and after it the batch. */
  #post(
    batch: Pending[] | undefined,
    values: CommandBatch['values'],
    durable: boolean,
    logged = this.#takeUnapplied(),
  ): void {
    const request: CommandBatch = { durable, values }
    const last = logged.at(-1)
    if (last !== undefined) {
      const records = joinRecords(logged.map(({ record }) => record))
      request.logged = { after: (logged[0] as LoggedBatch).number - 1, number: last.number, records }
      this.#log?.swap(this.#unapplied.applied)
    } else {
      // If these commands fail, the batch may not be executed before they are tried again.
      const earlier = this.#posted.findLast((posted) => posted.logged.length > 0)?.logged.at(-1)
      if (earlier !== undefined) request.needsLog = earlier.number
    }
    const synced = durable || last !== undefined
    if (!synced) this.#isUnsynced = true
    this.#posted.push({ batch, logged, synced })
    if (batch !== undefined) this.#letsDeltasPass = batch.every(leavesOtherRuns)
    this.#writer.postMessage(
      request,
      request.logged === undefined ? [] : [request.logged.records.buffer as ArrayBuffer],
    )
  }

  #postClose(): void {
    if (this.#isClosePosted) return
    this.#isClosePosted = true
    this.#apply()
    this.#writer.postMessage('close' satisfies WriterRequest)
  }

  #receive(message: WriterMessage): void {
    switch (message.type) {
      case 'done':
        this.#settle(message)
        break
      case 'failed':
        this.#fail(message.failure, message.applied)
        break
      case 'ready':
        this.#opened.resolve(this.#openLog(message.log))
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
        this.#log?.close(this.isApplied)
        this.#log = undefined
        this.#closed?.resolve(!message.isSpent)
        return
    }
    this.#next()
  }

  #openLog(state: LogState): void {
    this.#unapplied.begin(state.applied)
    try {
      this.#log = this.#options.openLog?.(state)
    } catch (error) {
      // The log makes commits cheaper; without it every command goes to the database at once.
      const sentence = 'The log beside the database cannot be used, so commits take longer. Check the disk.'
      this.#options.onError(new AppError('store_unavailable', sentence, { cause: error }))
    }
  }

  /** Sends what waits, if no batch is under way. */
  #next(): void {
    if (this.#sent !== undefined) return
    if (this.#closed !== undefined) this.#send()
    else if (this.#waiting.length > 0) this.#sendSoon()
  }

  #settle(reply: BatchReply): void {
    const { batch, logged, synced } = this.#posted.shift() ?? nothingPosted
    this.#isBlocked = this.#isLogBroken
    if (synced) this.#isUnsynced = false
    if (logged.length > 0) this.#wereApplied(logged)
    if (batch !== undefined) this.#settleBatch(batch, reply)
    this.#tellRows(reply)
    if (batch !== undefined) this.#tellAnswered()
  }

  /** Call after `onStored` of all rows, and in the same turn as `#wereApplied`, which drops the texts of rows that may not exist. */
  #tellRows({ folded, merged = [] }: BatchReply): void {
    for (let at = 0; at < merged.length; at += 4) {
      const [runId, id, firstSeq, lastSeq] = merged.slice(at, at + 4) as [string, number, number, number]
      this.#options.onMerged?.({ runId, id, firstSeq, lastSeq })
    }
    for (const [runId, lastSeq] of folded) this.#options.onFolded(runId, lastSeq)
  }

  #wereApplied(logged: readonly LoggedBatch[]): void {
    for (const { facts } of logged) for (const changed of facts) this.#facts.settled(changed)
    this.#unapplied.wereApplied(logged)
    if (this.#unapplied.hasReaders) this.#apply()
    if (!this.#unapplied.isEmpty) this.#applyAfter(applyMs)
  }

  #settleBatch(sent: Pending[], { failures, results }: BatchReply): void {
    this.#sent = undefined
    this.#letsDeltasPass = false
    const values = new Map(results)
    const failed = new Map(failures)
    // Promises settle in the order of the batch, so a caller sees earlier commands settled first.
    for (const [index, pending] of sent.entries()) {
      if (pending.facts !== undefined) this.#facts.settled(pending.facts)
      const failure = failed.get(index)
      if (failure === undefined) {
        const value = values.get(index) ?? null
        // Every delta takes this path, so it uses an index instead of an iterator.
        for (let at = 0; at < pending.tailRows.length; at += 1) {
          const row = pending.tailRows[at]
          const result = Array.isArray(value) ? value[at] : value
          if (row !== undefined && !hasStoredNothing(result)) this.#options.onStored(storedRow(row, result))
        }
        if (this.#log !== undefined) this.#known.learn(pending.effect, value)
        pending.resolve(value)
      } else {
        const error = fromFailure(failure)
        if (error.code === 'store_unavailable') this.#options.onError(error)
        if (pending.effect !== undefined) this.#known.forget(pending.effect)
        pending.reject(error)
      }
    }
  }

  /** `applied`: what became of the commands that were acknowledged from the log, if the database has them. */
  #fail(failure: Failure, applied: BatchReply | undefined): void {
    const { batch, logged } = this.#posted.shift() ?? nothingPosted
    const error = fromFailure(failure)
    this.#options.onError(error)
    this.#isBlocked = true
    if (applied !== undefined) {
      this.#wereApplied(logged)
      this.#tellRows(applied)
    } else if (logged.length > 0) {
      // They are acknowledged, so they are sent again, before everything else.
      this.#unapplied.putBack(logged)
      this.#unapplied.rejectReaders(error)
      this.#applyAfter(applyRetryMs)
    }
    if (batch !== undefined) {
      this.#sent = undefined
      this.#letsDeltasPass = false
      for (const { effect, facts, reject } of batch) {
        if (effect !== undefined) this.#known.forget(effect)
        if (facts !== undefined) this.#facts.settled(facts)
        reject(error)
      }
      this.#tellAnswered()
    }
    if (error.code === 'store_damaged') this.#giveUp(error)
  }

  #tellAnswered(): void {
    this.#answered?.resolve()
    this.#answered = undefined
  }

  /** Rejects all queued and later commands, because more writes would make the damage worse. */
  #giveUp(error: AppError): void {
    this.#refusal ??= error
    this.#applyTimer?.cancel()
    const waiting = this.#waiting
    this.#waiting = []
    this.#durable = false
    for (const pending of waiting) pending.reject(error)
  }

  /** Called when the thread has ended. After `close` that is expected and not reported. */
  #die(cause: unknown): void {
    this.#timer?.cancel()
    this.#applyTimer?.cancel()
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
    for (const pending of lost) pending.reject(error)
    // What only the log has is applied at the next start.
    this.#unapplied.rejectReaders(error)
    this.#tellAnswered()
    this.#opened.reject(error)
    this.#closed?.resolve(false)
  }
}
