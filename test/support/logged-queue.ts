// The commit queue with a log in a folder of its own, against a simulated writer and with a clock that the test moves.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../src/errors/app-error.ts'
import { CommandLog, readLog } from '../../src/stores/sqlite/command-log.ts'
import { type Commands, toFailure } from '../../src/stores/sqlite/commands.ts'
import { CommitQueue } from '../../src/stores/sqlite/commit-queue.ts'
import type { TailRow } from '../../src/stores/sqlite/pending-command.ts'
import { acceptInput, claimNow } from '../contracts/store-fixtures.ts'
import { manualClock } from './manual-clock.ts'
import { SimulatedWriter } from './simulated-writer.ts'

const lineage = 5

export class LoggedQueue {
  readonly #folder = mkdtempSync(join(tmpdir(), 'polylog-logged-'))
  readonly file = join(this.#folder, 'polylog.db')
  readonly clock = manualClock()
  readonly writer = new SimulatedWriter()
  readonly stored: [row: TailRow, body: string | undefined][] = []
  readonly folded: [runId: string, lastSeq: number][] = []
  mayLog = true
  readonly queue: CommitQueue
  /** The queue opens it. */
  log!: CommandLog

  /** `fileBytes`: the size of a file of the log, if it is not the usual one. */
  constructor(fileBytes?: number) {
    this.queue = new CommitQueue(this.writer.asWriter, {
      gatherMs: 0,
      clock: this.clock,
      onError: () => {},
      onStored: (row) => void this.stored.push([row, this.queue.loggedBody(row.id)]),
      onFolded: (runId, lastSeq) => void this.folded.push([runId, lastSeq]),
      openLog: (state) => (this.log = new CommandLog(this.file, state, this.clock, fileBytes)),
      mayLog: () => this.mayLog,
    })
    this.writer.say({ type: 'ready', log: { lineage, applied: 0 } })
  }

  accept(runId: string, changes: object = {}): Promise<Commands['accept']['gives']> {
    const command = this.#acceptCommand(runId, changes)
    return this.queue.run('accept', command, true, tailRow(runId, command.journal?.id ?? 0, 1))
  }

  #acceptCommand(runId: string, changes: object): Commands['accept']['takes'] {
    const claim = { node: claimNow.node, leaseUntil: 9000, leaseNow: 0 }
    const journal = { id: this.queue.tailId(), lastSeq: 1, body: `${runId} 1` }
    const { events: _events, claim: _claim, start: _start, ...input } = acceptInput(runId)
    return { ...input, claim, attempt: 1, journal, ...changes }
  }

  delta(runId: string, seq: number, epoch = 1, body = `${runId} ${seq}`): Promise<void> {
    return this.queue.appendDelta(tailRow(runId, this.queue.tailId(), seq), epoch, body, false)
  }

  /** The writer could not execute what it was sent. */
  failed(more: object = {}): void {
    this.writer.say({ type: 'failed', failure: toFailure(new AppError('store_unavailable', 'full')), ...more })
  }

  /** The events in a batch, as `run seq`. */
  events(index: number): string[] {
    return [...this.writer.loggedAt(index), this.writer.batchAt(index).values]
      .flat()
      .flatMap((value) => String(value).split('\n'))
      .filter((value) => /^r\d \d+$/.test(value))
  }

  /** The records of the log that are in a batch: how many, after which one, and up to which one. */
  loggedIn(index: number): { records: number; after: number | undefined; number: number | undefined } {
    const { logged } = this.writer.batchAt(index)
    return { records: this.writer.loggedAt(index).length, after: logged?.after, number: logged?.number }
  }

  /** How many records the log has after one. */
  inLog(after = 0): number {
    return readLog(this.file, { lineage, applied: after }).length
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export const tailRow = (runId: string, id: number, firstSeq: number, lastSeq = firstSeq): TailRow => ({
  runId,
  id,
  firstSeq,
  lastSeq,
})

/** The append that ends a run. */
export const endOf = (runId: string, seq: number): Commands['append']['takes'] => ({
  runId,
  epoch: 1,
  afterSeq: seq - 1,
  journal: { id: 99, lastSeq: seq, body: `${runId} ${seq}` },
  run: { status: 'succeeded', endedAt: 1 },
})

export const claimOne = { node: 'n', leaseUntil: 9, leaseNow: 0, now: 0, limit: 1, offers: [] }
