// The flow of the log in front of SQLite. A batch whose results are all certain (hot-commands.ts) is written to the log and
// acknowledged; the writer gets its commands later, with those of other batches. They are in front of the next batch that does
// need the writer, so that the database executes all commands in their order.
//
//   certain ──▶ written, synced if it needs it ──▶ acknowledged ──within applyMs──▶ posted ──reply──▶ applied
//   others  ───────────────────────────────────────────────────────────────────▶ posted ──reply──▶ settled
//
// One batch is current at a time: it is being logged, or it is with the writer. Deltas may be logged meanwhile, if the current
// batch lets them pass.

import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import { batchCharsMax, type CommandLog } from './command-log.ts'
import type { CommandResults } from './command-results.ts'
import type { BatchReply, CommandBatch, LogState } from './commands.ts'
import { type LoggedBatch, LoggedBatches } from './logged-batches.ts'
import { leavesOtherRuns, loggedBatch, type Pending, valuesOf } from './pending-command.ts'
import type { WaitingCommands } from './waiting-commands.ts'
import type { WriterLink } from './writer-link.ts'

/** Commands of one record of the log. */
type LoggedPart = { batch: readonly Pending[]; logged: LoggedBatch }

/**
 * How long a command may be in the log before it is sent to the database. The commands of this time share a transaction, and the deltas of a
 * run share a row.
 */
export const applyMs = 500
/** These bound the time that the writer needs for them, and that a read waits for it. */
const unappliedMax = 20_000
const unappliedChangesMax = 500
/** How long to wait after the database could not be written. */
const applyRetryMs = 500

export type LogOptions = {
  clock: Clock
  onError(error: unknown): void
  /** Opens the log; undefined if there is to be none. Called when the database is open. */
  openLog?(state: LogState): CommandLog | undefined
  /** Asked before each batch that could be logged. */
  mayLog?(): boolean
}

export class LoggedCommits {
  readonly #link: WriterLink
  readonly #results: CommandResults
  readonly #options: LogOptions
  /** Called when commands were logged, or could not be. The next batch may be started, if none is current. */
  readonly #onLogged: () => void
  #log: CommandLog | undefined
  /** The batch that is with the writer or being logged. */
  #current: Pending[] | undefined
  #letsDeltasPass = false
  /** Set while a caller of `answered` waits for the result of the current batch. */
  #answered: PromiseWithResolvers<void> | undefined
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

  constructor(link: WriterLink, results: CommandResults, options: LogOptions, onLogged: () => void) {
    this.#link = link
    this.#results = results
    this.#options = options
    this.#onLogged = onLogged
  }

  /** Opens the log. The database is open and has all that an earlier log had. */
  open(state: LogState): void {
    this.#unapplied.begin(state.applied)
    try {
      this.#log = this.#options.openLog?.(state)
    } catch (error) {
      // The log makes commits cheaper; without it every command goes to the database at once.
      const sentence = 'The log beside the database cannot be used, so commits take longer. Check the disk.'
      this.#options.onError(new AppError('store_unavailable', sentence, { cause: error }))
    }
  }

  /** A batch is with the writer or being logged. */
  get isBusy(): boolean {
    return this.#current !== undefined
  }

  /**
   * Deltas may be logged and acknowledged before the current batch is: it is written to the log, which syncs it, or it is with the writer and
   * leaves their runs alone.
   */
  get letsDeltasPass(): boolean {
    return this.#letsDeltasPass
  }

  /** Resolves when the callers of the current batch, if there is one, have its results. */
  answered(): Promise<void> {
    if (this.#current === undefined) return Promise.resolve()
    this.#answered ??= Promise.withResolvers()
    return this.#answered.promise
  }

  /** What only the log has, for reads. */
  get unapplied(): Pick<LoggedBatches, 'body' | 'isApplied' | 'isReadable'> {
    return this.#unapplied
  }

  /** Resolves when the database has the rows that are acknowledged now. Rejects if it cannot be written. */
  readable(about: string | undefined): Promise<void> {
    const readable = this.#unapplied.readable(about)
    this.#apply()
    return readable
  }

  /** Whether the log can be used now. */
  mayLog(): boolean {
    return this.#log !== undefined && !this.#isBlocked && this.#options.mayLog?.() !== false
  }

  /** Whether deltas can be logged now, in front of the commands that wait before them. */
  mayLogDeltas(): boolean {
    return this.mayLog() && !this.#isUnsynced
  }

  /** Logs the batch if its results are certain, and sends it to the writer otherwise. Takes waiting commands that can share the sync of the log. */
  start(batch: Pending[], durable: boolean, waiting: WaitingCommands): void {
    this.#current = batch
    const values = valuesOf(batch)
    const record = this.#recordOf(batch, values)
    if (record === undefined || this.#log === undefined) this.#post(batch, values, durable)
    else if (this.#isUnsynced) this.#post(batch, values, true)
    else if (durable && !this.#log.isSlow) this.#appendSynced(this.#log, record, batch, waiting)
    else this.#append(this.#log, record, batch, durable)
  }

  /** Logs deltas that are certain as one record, also while a batch is current that lets them pass. False if they cannot be logged now. */
  logDeltas(deltas: readonly Pending[]): boolean {
    const log = this.#log
    // A slow log writes in other threads, where one record could overtake another.
    if (log === undefined || log.isSlow || this.#isBlocked) return false
    const record = log.record(valuesOf(deltas), this.#unapplied.applied)
    if (record === undefined) return false
    this.#results.countAsExecuted(deltas)
    this.#append(log, record, deltas, false)
    return true
  }

  /** The record of the batch for the log. Undefined if not all its results are certain, or if there is no room. */
  #recordOf(batch: readonly Pending[], values: CommandBatch['values']): Buffer | undefined {
    const log = this.#log
    if (log === undefined || !this.mayLog()) return undefined
    if (batch.some(({ effect }) => effect === undefined)) return undefined
    const record = log.record(values, this.#unapplied.applied)
    if (record === undefined) {
      this.#apply()
      return undefined
    }
    // A command that is not certain may follow others that count as executed now. The writer then says what became of all of them.
    return this.#results.foresee(batch) ? record : undefined
  }

  #append(log: CommandLog, record: Buffer, batch: readonly Pending[], durable: boolean): void {
    const part = this.#partOf(log, batch, record)
    log.append(record, durable, (error) => this.#appended([part], error))
  }

  /**
   * Writes the batch, and after it those waiting commands that can be logged too, each as many as fit into a record, so that all of them
   * share a sync: when many runs end at once, it takes longer than the writes.
   */
  #appendSynced(log: CommandLog, first: Buffer, batch: Pending[], waiting: WaitingCommands): void {
    const parts: LoggedPart[] = []
    const write = (record: Buffer, part: LoggedPart): Error | null => {
      let failed: Error | null = null
      parts.push(part)
      // It is written at once, because the log is not slow.
      log.append(record, false, (error) => (failed = error))
      return failed
    }
    let failure = write(first, this.#partOf(log, batch, first))
    while (failure === null && !waiting.isEmpty && !log.isSlow) {
      const next = waiting.first(waiting.countUpTo(batchCharsMax))
      const record = this.#recordOf(next, valuesOf(next))
      if (record === undefined) break
      waiting.take(next.length)
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
    if (parts.some(({ batch }) => batch === this.#current)) this.#current = undefined
    if (error !== null) this.#logFailed(error, parts)
    else this.#acknowledge(parts)
    this.#onLogged()
  }

  #acknowledge(parts: readonly LoggedPart[]): void {
    for (const { batch, logged } of parts) {
      this.#unapplied.acknowledge(logged)
      this.#results.acknowledge(batch)
    }
    if (this.#current === undefined) this.#tellAnswered()
    const { commands, changes } = this.#unapplied
    const isMuch = commands > unappliedMax || changes > unappliedChangesMax
    if (isMuch || this.#log?.isHalfFull === true) this.#apply()
    this.#applyAfter(applyMs)
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
      this.#results.refuse(batch, error)
    }
    if (this.#current === undefined) this.#tellAnswered()
    this.#apply()
  }

  #applyAfter(ms: number): void {
    this.#applyTimer ??= this.#options.clock.after(ms, () => {
      this.#applyTimer = undefined
      this.#apply()
    })
  }

  /** Sends what only the log has to the writer. */
  #apply(): void {
    if (this.#link.hasLogged) return
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
    const hasLogged = logged.length > 0
    if (hasLogged) this.#log?.swap(this.#unapplied.applied)
    const synced = durable || hasLogged
    if (!synced) this.#isUnsynced = true
    if (batch !== undefined) this.#letsDeltasPass = batch.every(leavesOtherRuns)
    this.#link.post({ batch, logged, synced }, values, durable)
  }

  /** The writer has executed the first request that it had. */
  settle(reply: BatchReply): void {
    const { batch, logged, synced } = this.#link.takeAnswered()
    this.#isBlocked = this.#isLogBroken
    if (synced) this.#isUnsynced = false
    if (logged.length > 0) this.#wereApplied(logged)
    if (batch !== undefined) {
      this.#endCurrent()
      this.#results.settle(batch, reply, this.#log !== undefined)
    }
    this.#results.tellRows(reply)
    if (batch !== undefined) this.#tellAnswered()
  }

  /**
   * The writer could not execute the first request that it had. `applied`: what became of the commands that were acknowledged from the log,
   * if the database has them.
   */
  fail(error: AppError, applied: BatchReply | undefined): void {
    const { batch, logged } = this.#link.takeAnswered()
    this.#options.onError(error)
    this.#isBlocked = true
    if (applied !== undefined) {
      this.#wereApplied(logged)
      this.#results.tellRows(applied)
    } else if (logged.length > 0) {
      // They are acknowledged, so they are sent again, before everything else.
      this.#unapplied.putBack(logged)
      this.#unapplied.rejectReaders(error)
      this.#applyAfter(applyRetryMs)
    }
    if (batch === undefined) return
    this.#endCurrent()
    this.#results.fail(batch, error)
    this.#tellAnswered()
  }

  #wereApplied(logged: readonly LoggedBatch[]): void {
    this.#results.wereApplied(logged)
    this.#unapplied.wereApplied(logged)
    if (this.#unapplied.hasReaders) this.#apply()
    if (!this.#unapplied.isEmpty) this.#applyAfter(applyMs)
  }

  #endCurrent(): void {
    this.#current = undefined
    this.#letsDeltasPass = false
  }

  #tellAnswered(): void {
    this.#answered?.resolve()
    this.#answered = undefined
  }

  /** Sends what only the log has to the writer, and then asks it to close the database. */
  close(): void {
    if (this.#link.isClosePosted) return
    this.#apply()
    this.#link.postClose()
  }

  /** The database is closed. The files of the log are removed if it has everything. */
  closeLog(): void {
    this.#log?.close(this.#unapplied.isApplied)
    this.#log = undefined
  }

  /** The writer thread has ended. Rejects the current batch, after it the commands that wait, and then the readers. */
  abandon(waiting: readonly Pending[], error: AppError): void {
    this.stopApplying()
    const lost = [...(this.#current ?? []), ...waiting]
    this.#current = undefined
    for (const { reject } of lost) reject(error)
    // What only the log has is applied at the next start.
    this.#unapplied.rejectReaders(error)
    this.#tellAnswered()
  }

  /** The writer no longer gets by itself what only the log has. The cancelled timer stays set, so that no other one is started. */
  stopApplying(): void {
    this.#applyTimer?.cancel()
  }
}
