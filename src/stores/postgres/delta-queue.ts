// Appends that change nothing but the journal, which are nearly all: they wait a few
// milliseconds, and those of many runs are written by one statement. A durable one does not wait,
// and takes those that do with it. A run whose epoch or last seq does not match is left out by the
// statement, and its append fails alone.

import type { Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import { transaction } from './connection.ts'
import type { JournalRow } from './journal-table.ts'
import { toPostgresError } from './postgres-errors.ts'

type Waiting = {
  runId: string
  epoch: number
  row: JournalRow
  durable: boolean
  resolve(): void
  reject(error: unknown): void
}

/** Bounds the parameters of one statement. */
const batchRowsMax = 500

/** Locks the rows in one order, so that two statements cannot wait for each other. */
const statement = `
  WITH given AS (
    SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[]) AS given (run_id, epoch, first_seq, last_seq, body)
  ), locked AS (
    SELECT id, epoch, last_seq FROM runs WHERE id IN (SELECT run_id FROM given) ORDER BY id FOR NO KEY UPDATE
  ), moved AS (
    UPDATE runs SET last_seq = given.last_seq FROM given, locked
    WHERE runs.id = given.run_id AND locked.id = given.run_id
      AND locked.epoch = given.epoch AND locked.last_seq = given.first_seq - 1
    RETURNING runs.id
  )
  INSERT INTO journal (run_id, first_seq, last_seq, body)
  SELECT run_id, first_seq, last_seq, body FROM given WHERE run_id IN (SELECT id FROM moved)
  RETURNING run_id`

export class DeltaQueue {
  readonly #pool: Pool
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>
  readonly #gatherMs: number
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  #timer: Timer | undefined
  /** When the last batch without a durable append was sent. */
  #deltasSentAt = -Infinity

  constructor(pool: Pool, clock: Pick<Clock, 'after' | 'monotonic'>, gatherMs: number) {
    this.#pool = pool
    this.#clock = clock
    this.#gatherMs = gatherMs
  }

  append(runId: string, epoch: number, row: JournalRow, durable: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ runId, epoch, row, durable, resolve, reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#writing !== undefined) return
    const wait = this.#deltasSentAt + this.#gatherMs - this.#clock.monotonic()
    const urgent = this.#waiting.some(({ durable }) => durable)
    if (wait <= 0 || urgent) this.#flush()
    else {
      this.#timer ??= this.#clock.after(wait, () => {
        this.#timer = undefined
        this.#flush()
      })
    }
  }

  #flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#writing !== undefined || this.#waiting.length === 0) return
    const batch = this.#takeBatch()
    const durable = batch.some((each) => each.durable)
    if (!durable) this.#deltasSentAt = this.#clock.monotonic()
    this.#writing = this.#write(batch, durable).finally(() => {
      this.#writing = undefined
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  /** At most one append of each run: the second one has to see what the first one wrote. */
  #takeBatch(): Waiting[] {
    const batch = new Map<string, Waiting>()
    const rest: Waiting[] = []
    for (const each of this.#waiting) {
      if (batch.size < batchRowsMax && !batch.has(each.runId)) batch.set(each.runId, each)
      else rest.push(each)
    }
    this.#waiting = rest
    return [...batch.values()]
  }

  async #write(batch: Waiting[], durable: boolean): Promise<void> {
    try {
      const written = await transaction(this.#pool, durable, async (db) => {
        const rows = await db.all(
          statement,
          batch.map(({ runId }) => runId),
          batch.map(({ epoch }) => epoch),
          batch.map(({ row }) => row.firstSeq),
          batch.map(({ row }) => row.lastSeq),
          batch.map(({ row }) => row.body),
        )
        return new Set(rows.map((row) => row['run_id'] as string))
      })
      for (const each of batch) {
        if (written.has(each.runId)) each.resolve()
        else each.reject(fenced(each.runId, each.epoch, each.row.firstSeq - 1))
      }
    } catch (error) {
      for (const each of batch) each.reject(toPostgresError(error))
    }
  }
}

export function fenced(
  runId: string,
  epoch: number,
  afterSeq: number,
  found?: { epoch: number; lastSeq: number },
): AppError {
  return new AppError(
    'run_fenced',
    'Another writer owns this run now, or its journal has moved on. Stop working on it here.',
    { details: { runId, epoch, afterSeq, ...(found === undefined ? {} : { found }) } },
  )
}
