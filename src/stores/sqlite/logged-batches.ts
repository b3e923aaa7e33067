// The batches that are in the log and that the database does not have yet, in the order of their
// numbers, and the readers that wait until the database has them.

import type { AppError } from '../../errors/app-error.ts'
import type { CommandBatch } from './commands.ts'

export type LoggedBatch = {
  readonly number: number
  values: CommandBatch['values']
  /** How many commands it has. */
  count: number
  /** The ids of its rows in the journal tail. */
  readonly tailIds: readonly number[]
  /** False if it only adds events. */
  readonly changesRows: boolean
  /** Its callers know that it is stored. */
  isAcknowledged: boolean
}

type Reader = { number: number; resolve: () => void; reject: (error: AppError) => void }

export class LoggedBatches {
  /** Those that are not with the writer. */
  #batches: LoggedBatch[] = []
  #commands = 0
  /** The number of the last batch that is acknowledged, and of the last one among them that changes rows. */
  #acknowledged = 0
  #acknowledgedRows = 0
  /** The database has the log up to this number. */
  #applied = 0
  #readers: Reader[] = []

  /** The database has the log up to this number, and the log has nothing more. */
  begin(applied: number): void {
    this.#applied = applied
    this.#acknowledged = applied
  }

  add(batch: LoggedBatch): void {
    this.#batches.push(batch)
    this.#commands += batch.count
  }

  acknowledge(batch: LoggedBatch): void {
    batch.isAcknowledged = true
    this.#acknowledged = Math.max(this.#acknowledged, batch.number)
    if (batch.changesRows) this.#acknowledgedRows = Math.max(this.#acknowledgedRows, batch.number)
  }

  /** Its callers were told that it failed. Its number counts as applied in its turn, so that the batch is not executed at the next start. */
  drop(batch: LoggedBatch): void {
    this.#commands -= batch.count
    batch.values = []
    batch.count = 0
    this.acknowledge(batch)
  }

  /** Takes the batches for the writer, up to the first one that is not acknowledged: it may still fail. */
  take(): LoggedBatch[] {
    const end = this.#batches.findIndex(({ isAcknowledged }) => !isAcknowledged)
    const taken = this.#batches.splice(0, end === -1 ? this.#batches.length : end)
    this.#commands -= countOf(taken)
    return taken
  }

  /** The writer could not execute them. */
  putBack(batches: readonly LoggedBatch[]): void {
    this.#batches = [...batches, ...this.#batches].sort((one, other) => one.number - other.number)
    this.#commands += countOf(batches)
  }

  /** The database has executed them, and all before them. */
  wereApplied(batches: readonly LoggedBatch[]): void {
    this.#applied = batches.at(-1)?.number ?? this.#applied
    const readers = this.#readers
    this.#readers = readers.filter(({ number }) => number > this.#applied)
    for (const { number, resolve } of readers) if (number <= this.#applied) resolve()
  }

  /** Resolves when the database has every row that is acknowledged now. */
  readable(): Promise<void> {
    const number = this.#acknowledgedRows
    return new Promise((resolve, reject) => this.#readers.push({ number, resolve, reject }))
  }

  rejectReaders(error: AppError): void {
    for (const { reject } of this.#readers.splice(0)) reject(error)
  }

  /** How many commands are not with the writer. */
  get commands(): number {
    return this.#commands
  }

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  get hasReaders(): boolean {
    return this.#readers.length > 0
  }

  get applied(): number {
    return this.#applied
  }

  /** True if the database has everything that was acknowledged. */
  get isApplied(): boolean {
    return this.#applied === this.#acknowledged
  }

  /** True if the database has every row that was acknowledged. Deltas change no row. */
  get isReadable(): boolean {
    return this.#applied >= this.#acknowledgedRows
  }
}

function countOf(batches: readonly LoggedBatch[]): number {
  return batches.reduce((sum, { count }) => sum + count, 0)
}
