// The batches that are in the log and that the database does not have yet, in the order of their
// numbers, and the readers that wait until the database has them.

import type { AppError } from '../../errors/app-error.ts'
import { type CommandBatch, deltaLength, deltaMark, deltasMark } from './commands.ts'
import { everyTopic } from './hot-commands.ts'
import type { ChangedFacts } from './known-facts.ts'

export type LoggedBatch = {
  readonly number: number
  values: CommandBatch['values']
  /** How many commands it has. */
  count: number
  /** The ids of its rows in the journal tail. */
  readonly tailIds: readonly number[]
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
    batch.values = []
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
    return taken
  }

  /** The writer could not execute them. */
  putBack(batches: readonly LoggedBatch[]): void {
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

/**
 * The commands of the batches in their order, except that deltas of a run which follow each other are one command: they cost as much to
 * copy to the writer, and to execute there, as one of them.
 */
export function commandsOf(batches: readonly LoggedBatch[]): { values: CommandBatch['values']; count: number } {
  const values: CommandBatch['values'] = []
  let count = 0
  /** By run, the index at which its last command begins. Only runs whose last command is a delta. */
  const starts = new Map<string, number>()
  for (const { values: given, changedRuns } of batches) {
    let changes = 0
    for (let at = 0; at < given.length;) {
      if (given[at] !== deltaMark) {
        const end = at + 3 + (given[at + 2] as number)
        while (at < end) values.push(given[at++] as string | number)
        count += 1
        starts.delete(changedRuns[changes++] as string)
        continue
      }
      const runId = given[at + 1] as string
      const start = starts.get(runId)
      if (start === undefined) {
        starts.set(runId, values.length)
        for (const end = at + deltaLength; at < end; at += 1) values.push(given[at] as string | number)
        count += 1
        continue
      }
      values[start] = deltasMark
      values[start + 5] = given[at + 5] as number
      values[start + 6] = `${values[start + 6]}\n${given[at + 6]}`
      at += deltaLength
    }
  }
  return { values, count }
}
