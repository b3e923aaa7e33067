// The batches that are in the log and that the database does not have yet, in the order of their
// numbers, and the readers that wait until the database has them.

import type { AppError } from '../../errors/app-error.ts'
import { deltaLength, deltaMark } from './commands.ts'
import { everyTopic } from './hot-commands.ts'
import type { ChangedFacts } from './known-facts.ts'
import { valuesOfRecords } from './log-record.ts'

export type LoggedBatch = {
  readonly number: number
  /** Its record, in the memory of the log. */
  record: Uint8Array
  /** How many commands it has. */
  count: number
  /** The ids of its rows in the journal tail. */
  readonly tailIds: readonly number[]
  /** The texts of those rows, by their ids: of commands that change other rows too, and of deltas when they have been read from the record. */
  readonly bodies: Map<number, string>
  /** The run of each command that changes rows. Deltas only add events. */
  changedRuns: readonly string[]
  /** What the rows are about that it changes; see `topicsOf`. */
  topics: readonly string[]
  /** What its commands may change of the known facts. */
  readonly facts: readonly ChangedFacts[]
  /** Its callers know that it is stored. */
  isAcknowledged: boolean
}

type Reader = { number: number; resolve: () => void; reject: (error: AppError) => void }

export class LoggedBatches {
  /** Those that are not with the writer. */
  #batches: LoggedBatch[] = []
  #withWriter: LoggedBatch[] = []
  #commands = 0
  #changes = 0
  /** The number of the last batch that is acknowledged, of the last one among them that changes rows, and by what these rows are about. */
  #acknowledged = 0
  #acknowledgedRows = 0
  readonly #acknowledgedTopics = new Map<string, number>()
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
    this.#count(batch, 1)
  }

  acknowledge(batch: LoggedBatch): void {
    batch.isAcknowledged = true
    this.#acknowledged = Math.max(this.#acknowledged, batch.number)
    if (batch.changedRuns.length > 0) this.#acknowledgedRows = Math.max(this.#acknowledgedRows, batch.number)
    // Batches with changes are acknowledged in the order of their numbers.
    for (const topic of batch.topics) this.#acknowledgedTopics.set(topic, batch.number)
  }

  /** Its callers were told that it failed. Its number counts as applied in its turn, so that the batch is not executed at the next start. */
  drop(batch: LoggedBatch): void {
    this.#count(batch, -1)
    batch.record = new Uint8Array(0)
    batch.count = 0
    batch.changedRuns = []
    batch.topics = []
    this.acknowledge(batch)
  }

  /** Takes the batches for the writer, up to the first one that is not acknowledged: it may still fail. */
  take(): LoggedBatch[] {
    const end = this.#batches.findIndex(({ isAcknowledged }) => !isAcknowledged)
    const taken = this.#batches.splice(0, end === -1 ? this.#batches.length : end)
    for (const batch of taken) this.#count(batch, -1)
    this.#withWriter.push(...taken)
    return taken
  }

  /** The writer could not execute them. */
  putBack(batches: readonly LoggedBatch[]): void {
    this.#withWriter = this.#withWriter.filter((batch) => !batches.includes(batch))
    this.#batches = [...batches, ...this.#batches].sort((one, other) => one.number - other.number)
    for (const batch of batches) this.#count(batch, 1)
  }

  #count({ count, changedRuns }: LoggedBatch, sign: 1 | -1): void {
    this.#commands += sign * count
    this.#changes += sign * changedRuns.length
  }

  /** The database has executed them, and all before them. */
  wereApplied(batches: readonly LoggedBatch[]): void {
    this.#applied = batches.at(-1)?.number ?? this.#applied
    this.#withWriter = this.#withWriter.filter(({ number }) => number > this.#applied)
    const readers = this.#readers
    this.#readers = readers.filter(({ number }) => number > this.#applied)
    for (const { number, resolve } of readers) if (number <= this.#applied) resolve()
    for (const [topic, number] of this.#acknowledgedTopics)
      if (number <= this.#applied) this.#acknowledgedTopics.delete(topic)
  }

  /** Resolves when the database has every row that is acknowledged now, or every row about a topic. */
  readable(about?: string): Promise<void> {
    const number = this.#lastChange(about)
    return new Promise((resolve, reject) => this.#readers.push({ number, resolve, reject }))
  }

  rejectReaders(error: AppError): void {
    for (const { reject } of this.#readers.splice(0)) reject(error)
  }

  /** The text of a row of the journal tail. Undefined if the database has it. */
  body(tailId: number): string | undefined {
    const holds = ({ tailIds }: LoggedBatch) => tailIds.includes(tailId)
    const batch = this.#withWriter.find(holds) ?? this.#batches.find(holds)
    if (batch === undefined) return undefined
    if (!batch.bodies.has(tailId)) readDeltaBodies(batch)
    return batch.bodies.get(tailId)
  }

  /** How many commands are not with the writer. */
  get commands(): number {
    return this.#commands
  }

  /** How many of them change rows. */
  get changes(): number {
    return this.#changes
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

  /** True if the database has every row that was acknowledged, or every row about a topic. Deltas change no row. */
  isReadable(about?: string): boolean {
    return this.#applied >= this.#lastChange(about)
  }

  /** The number of the last acknowledged batch that changes rows about the topic. 0 if the database has it. */
  #lastChange(about: string | undefined): number {
    if (about === undefined) return this.#acknowledgedRows
    return Math.max(this.#acknowledgedTopics.get(about) ?? 0, this.#acknowledgedTopics.get(everyTopic) ?? 0)
  }
}

function readDeltaBodies({ record, bodies }: LoggedBatch): void {
  for (const values of valuesOfRecords(record)) {
    for (let at = 0; at < values.length;) {
      const isDelta = values[at] === deltaMark
      if (isDelta) bodies.set(values[at + 4] as number, values[at + 6] as string)
      at += isDelta ? deltaLength : 3 + (values[at + 2] as number)
    }
  }
}
