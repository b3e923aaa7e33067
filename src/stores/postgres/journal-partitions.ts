// The partitions of the journal. They are made before they are needed, or on demand, and dropped
// when no run is left in their range. Writers never wait for either: attaching and
// `DETACH … CONCURRENTLY` take locks that appends do not conflict with.

import type { Pool, PoolClient } from 'pg'
import type { JournalTidied } from '../upkeep-store.ts'
import {
  boundOf,
  freeRange,
  partitionName,
  type PartitionRange,
  rangeOfName,
  timeEnd,
  timeOfId,
} from './partition-range.ts'

/** Any number that no other program uses for an advisory lock in the same database. */
const partitionLock = 7_081_994_002

/**
 * How long a change of partitions waits for a lock, and a detach for transactions that began before it, such as a backup. The
 * next call tries again.
 */
const waitMaxMs = 2_000

/** A partition is dropped only this long after its end, because the clocks of nodes may differ. */
const dropAfterMs = 24 * 60 * 60_000

/** Rows that one statement deletes. */
const orphanBatch = 500

/** So many partitions are dropped in one call, and so many batches of orphans deleted. */
const stepsMax = 20

const daysMs = 24 * 60 * 60_000
const periodMaxMs = 30 * daysMs

/** The length of a partition: an eighth of the retention, so that few partitions exist and journals leave soon after their runs. */
export function partitionPeriodMs(retentionMs: number | null): number {
  if (retentionMs === null) return periodMaxMs
  return Math.min(Math.max(Math.ceil(retentionMs / 8 / daysMs), 1) * daysMs, periodMaxMs)
}

type Partition = PartitionRange & { name: string; state: 'attached' | 'pending' | 'detached' }

export class JournalPartitions {
  readonly #pool: Pool
  readonly #periodMs: number
  /** The attached ones when they were last read. Another node may have made or dropped some since. */
  #known: Partition[] = []
  #making: Promise<unknown> | undefined

  constructor(pool: Pool, periodMs: number = periodMaxMs) {
    this.#pool = pool
    this.#periodMs = periodMs
  }

  /** Makes the partitions for new runs, unless they exist. Call before the transaction that inserts their first events. */
  async cover(runIds: readonly string[]): Promise<void> {
    const times = runIds.map(timeOfId).filter((time) => time !== undefined)
    const isMissing = () => times.some((time) => !isCovered(this.#known, time))
    // Runs that come at the same moment wait for one attempt, instead of each using a connection.
    if (isMissing()) await this.#making?.catch(() => {})
    if (!isMissing()) return
    const making = this.#make(times)
    this.#making = making
    await making
  }

  /** After an insert that found no partition: the next `cover` reads them again. */
  forget(): void {
    this.#known = []
  }

  /**
   * Makes the partitions of the next two periods, drops those without runs, and deletes events without a run from partitions
   * that ended before `endedBefore` but still have runs. Bounded work: call it again later.
   */
  async tidy(endedBefore: number | null): Promise<JournalTidied> {
    const now = await this.#now()
    const made = await this.#make([now, now + this.#periodMs, now + 2 * this.#periodMs])
    let dropped = 0
    let orphans = 0
    for (const partition of await this.#read()) {
      if (partition.until + dropAfterMs > now) continue
      if (dropped >= stepsMax || orphans >= stepsMax * orphanBatch) break
      if (!(await this.#hasRuns(partition)) || partition.state !== 'attached') {
        if (await this.#drop(partition)) dropped += 1
      } else if (endedBefore !== null && partition.until < endedBefore) {
        orphans += await this.#deleteOrphans(partition.name)
      }
    }
    for (const name of ['journal_low', 'journal_high']) orphans += await this.#deleteOrphans(name)
    return { partitionsMade: made, partitionsDropped: dropped, rowsRemoved: orphans }
  }

  async #now(): Promise<number> {
    const { rows } = await this.#pool.query<{ now: number }>('SELECT polylog_now() AS now')
    return (rows[0] as { now: number }).now
  }

  async #hasRuns({ from, until }: PartitionRange): Promise<boolean> {
    const { rows } = await this.#pool.query('SELECT 1 FROM runs WHERE id >= $1 AND id < $2 LIMIT 1', [
      boundOf(from),
      boundOf(until),
    ])
    return rows.length > 0
  }

  /** Oldest first. */
  async #read(client: Pick<PoolClient, 'query'> = this.#pool): Promise<Partition[]> {
    const { rows } = await client.query<{ name: string; state: Partition['state'] }>(
      `SELECT relname AS name, CASE WHEN inhrelid IS NULL THEN 'detached' WHEN inhdetachpending THEN 'pending' ELSE 'attached' END AS state
       FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
       WHERE relkind = 'r' AND starts_with(relname, 'journal_')
         AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'journal'::regclass)`,
    )
    return rows
      .flatMap(({ name, state }) => {
        const range = rangeOfName(name)
        return range === undefined ? [] : [{ name, state, ...range }]
      })
      .sort((a, b) => a.from - b.from)
  }

  /** Returns how many were made. A lock lets one node at a time make some, and the others find the work done. */
  async #make(times: readonly number[]): Promise<number> {
    this.#known = (await this.#read()).filter(({ state }) => state === 'attached')
    if (times.every((time) => isCovered(this.#known, time))) return 0
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      await client.query('BEGIN')
      await client.query('SELECT pg_advisory_xact_lock($1)', [partitionLock])
      // Only now: another node that makes partitions is waited for, and it is bounded in the same way.
      await client.query(`SET LOCAL lock_timeout = ${waitMaxMs}`)
      // Also the ones that are being removed: their ranges are taken until then.
      const found = await this.#read(client)
      let made = 0
      for (const time of times) {
        if (isCovered(found, time)) continue
        const range = freeRange(found, time, this.#periodMs)
        const name = partitionName(range)
        const partition: Partition = { name, state: 'attached', ...range }
        await client.query(`CREATE TABLE ${name} (LIKE journal INCLUDING STORAGE INCLUDING COMPRESSION)`)
        await client.query(attach(partition))
        found.push(partition)
        made += 1
      }
      await client.query('COMMIT')
      this.#known = found.filter(({ state }) => state === 'attached')
      return made
    } catch (error) {
      await client.query('ROLLBACK').catch((failure: Error) => (broken = failure))
      throw error
    } finally {
      client.release(broken)
    }
  }

  /** False if a transaction that is still open uses the partition; it is then detached later. */
  async #drop(partition: Partition): Promise<boolean> {
    const { name } = partition
    const client = await this.#pool.connect()
    try {
      await client.query(`SET lock_timeout = ${waitMaxMs}; SET statement_timeout = ${waitMaxMs}`)
      if (partition.state !== 'detached') {
        const how = partition.state === 'pending' ? 'FINALIZE' : 'CONCURRENTLY'
        await client.query(`ALTER TABLE journal DETACH PARTITION ${name} ${how}`)
      }
      this.forget()
      // A node whose clock is wrong by more than the retention may have accepted a run in this range meanwhile.
      const late = await this.#hasRuns(partition)
      await client.query(late ? attach(partition) : `DROP TABLE ${name}`)
      return !late
    } catch (error) {
      if (isWaiting(error)) return false
      throw error
    } finally {
      // The settings must not stay on a connection that others use.
      client.release(true)
    }
  }

  /** Events whose run has been removed. */
  async #deleteOrphans(name: string): Promise<number> {
    let deleted = 0
    for (let step = 0; step < stepsMax; step += 1) {
      const { rowCount } = await this.#pool.query(
        `DELETE FROM ${name} WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM ${name} AS event WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = event.run_id) LIMIT ${orphanBatch}))`,
      )
      deleted += rowCount ?? 0
      if ((rowCount ?? 0) < orphanBatch) break
    }
    return deleted
  }
}

function attach({ name, from, until }: Partition): string {
  // The fixed partition for later ids begins at '8'.
  const end = until === timeEnd ? '8' : boundOf(until)
  return `ALTER TABLE journal ATTACH PARTITION ${name} FOR VALUES FROM ('${boundOf(from)}') TO ('${end}')`
}

function isCovered(partitions: readonly PartitionRange[], time: number): boolean {
  return partitions.some(({ from, until }) => time >= from && time < until)
}

const lockNotAvailable = '55P03'
const queryCanceled = '57014'

function isWaiting(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === lockNotAvailable || code === queryCanceled
}
