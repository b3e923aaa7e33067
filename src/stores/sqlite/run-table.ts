// Writes the runs table: claims, leases, cancel requests, the row changes of an append,
// and removal. Used in the writer thread, inside the batch's transaction.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import type { ClaimedRun, RunRow } from '../run-store.ts'
import type { Commands, Lease } from './commands.ts'
import type { Row } from './connection.ts'
import type { JournalWriter } from './journal-writer.ts'
import { toJson } from './json-column.ts'
import type { CachedRun, FencedRun, RunCache } from './run-cache.ts'
import { type RunChange, releasesRun, terminal } from './run-change.ts'
import { runReader, toRunRow, unfinished } from './run-rows.ts'

export type RunTable = ReturnType<typeof runTable>

export function runTable(db: DatabaseSync, cache: RunCache, journal: JournalWriter) {
  const reader = runReader(db)
  const fence = db.prepare('SELECT epoch, last_seq, conversation_id, turn, position FROM runs WHERE id = ?')
  const free = `${unfinished} AND (lease_owner IS NULL OR lease_until <= :leaseNow)`
  const offered = `(needs IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(needs) WHERE value NOT IN (SELECT value FROM json_each(:offers))))`
  // Each SELECT uses its own index, so that the cost of a claim grows with the claimable runs and not with the parked ones.
  const claimable = db.prepare(`
    SELECT id, position, lease_owner FROM runs WHERE ${free} AND cancel_at IS NULL AND ${offered} AND status = 'queued' AND held = 0 AND NOT EXISTS (
      SELECT 1 FROM runs AS before
      WHERE before.conversation_id = runs.conversation_id
        AND coalesce(before.turn, before.position) < coalesce(runs.turn, runs.position)
        AND before.status IN ('queued', 'running', 'waiting_user'))
    UNION ALL SELECT id, position, lease_owner FROM runs WHERE ${free} AND cancel_at IS NULL AND ${offered} AND status = 'running'
    UNION ALL SELECT id, position, lease_owner FROM runs INDEXED BY runs_to_wake
      WHERE ${free} AND cancel_at IS NULL AND ${offered} AND status = 'waiting_user' AND wake_at <= :now
    UNION ALL SELECT id, position, lease_owner FROM runs INDEXED BY runs_held
      WHERE ${free} AND cancel_at IS NULL AND ${offered} AND held = 1 AND status = 'queued' AND wake_at <= :now
    ORDER BY position LIMIT :limit`)
  /** Runs that could be executed now, except that no live node offers what they need. */
  const unplaceable = `needs IS NOT NULL AND ${free} AND cancel_at IS NULL
    AND ((held = 0 AND status IN ('queued', 'running')) OR wake_at <= :now)
    AND NOT EXISTS (
      SELECT 1 FROM nodes WHERE draining = 0 AND seen_at + lease_ms > :now AND NOT EXISTS (
        SELECT 1 FROM json_each(runs.needs) WHERE value NOT IN (SELECT value FROM json_each(nodes.offers))))`
  const unplaceableRuns = db.prepare(`SELECT * FROM runs WHERE ${unplaceable} ORDER BY position LIMIT :limit`)
  const isUnplaceable = db.prepare(`SELECT 1 FROM runs WHERE id = :runId AND ${unplaceable}`)
  const toCancel = db.prepare(
    `SELECT id, position, lease_owner FROM runs INDEXED BY runs_to_cancel WHERE ${free} AND cancel_at IS NOT NULL`,
  )
  const take = db.prepare(
    `UPDATE runs SET epoch = epoch + 1, lease_owner = ?, lease_until = ?, woken_at = NULL, slot = cancel_at IS NULL,
       last_seq = max(last_seq, ?)
     WHERE id = ? RETURNING *`,
  )
  const slotsInUse = db.prepare('SELECT count(*) AS count FROM runs WHERE slot = 1 AND lease_until > ?')
  const renew = db.prepare(
    `UPDATE runs SET lease_until = ? WHERE id IN (SELECT value FROM json_each(?)) AND lease_owner = ? AND ${unfinished} RETURNING *`,
  )
  const cancel = db.prepare(
    `UPDATE runs SET cancel_by = ?, cancel_reason = ?, cancel_at = ? WHERE id = ? AND cancel_at IS NULL AND ${unfinished}`,
  )
  // 0 is always due. The time of the decision would not be, if the clock is set back after it.
  const wake = db.prepare(`UPDATE runs SET woken_at = 0, wake_at = 0 WHERE id = ? AND ${unfinished}`)
  // A wake-up that came while the owner worked (`woken_at`) wins over a later wake-up that the owner asks for when it parks the run.
  // ?1: whether the run ends; ?2: whether its lease is released. Every run executes this, and binding 15 names costs as much as a short query.
  const patch = db.prepare(`
    UPDATE runs SET
      status = coalesce(?3, status),
      attempt = coalesce(?4, attempt),
      started_at = coalesce(?5, started_at),
      ended_at = coalesce(?6, ended_at),
      error = CASE WHEN ?7 THEN ?8 ELSE error END,
      wake_at = CASE WHEN NOT ?9 THEN wake_at
                     WHEN woken_at IS NULL OR ?1 THEN ?10
                     ELSE min(woken_at, coalesce(?10, woken_at)) END,
      cache_key = coalesce(?11, cache_key),
      engine = coalesce(?12, engine),
      usage = coalesce(?13, usage),
      share_key = CASE WHEN ?1 THEN NULL ELSE share_key END,
      lease_owner = CASE WHEN ?2 THEN NULL ELSE lease_owner END,
      lease_until = CASE WHEN ?2 THEN NULL ELSE lease_until END,
      slot = CASE WHEN ?1 OR ?2 THEN 0 ELSE slot END,
      last_seq = ?14
    WHERE id = ?15`)
  const expired = db.prepare('SELECT id FROM runs WHERE ended_at < ? ORDER BY ended_at LIMIT ?')
  const endedOf = db.prepare(
    `SELECT id, cache_key FROM runs
     WHERE owner = ? AND family IN (SELECT value FROM json_each(?)) AND ended_at IS NOT NULL ORDER BY position LIMIT ?`,
  )
  const remove = db.prepare('DELETE FROM runs WHERE id = ?')
  const unhold = db.prepare(
    `UPDATE runs SET held = 0, wake_at = NULL, skill_id = coalesce(?, skill_id)
     WHERE id = ? AND held = 1 AND status = 'queued' AND cancel_at IS NULL AND lease_owner IS NULL`,
  )
  const queued = db.prepare(
    "SELECT 1 FROM runs WHERE id = ? AND status = 'queued' AND held = 0 AND lease_owner IS NULL AND cancel_at IS NULL",
  )
  const dropBlobs = db.prepare('DELETE FROM blobs WHERE run_id = ? AND substr(id, 1, length(?)) = ?')
  const putBlob = db.prepare(
    'INSERT INTO blobs (id, run_id, body) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body',
  )

  /** The row with the `lastSeq` of the cache, which is newer than the one on disk. */
  function current(row: Row): RunRow {
    const run = toRunRow(row)
    const cached = cache.get(run.id)
    return cached === undefined ? run : { ...run, lastSeq: cached.lastSeq }
  }

  function read(id: string): RunRow | undefined {
    const run = reader.read(id)
    const cached = cache.get(id)
    return run === undefined || cached === undefined ? run : { ...run, lastSeq: cached.lastSeq }
  }

  return {
    reader,
    read,

    /** Throws `run_fenced` unless `epoch` and `afterSeq` are current. Returns the run's cache entry, saved for rollback and ready to be changed. */
    checkFence(runId: string, epoch: number, afterSeq: number): CachedRun {
      const cached = cache.get(runId)
      let at: FencedRun | undefined = cached
      if (cached === undefined) {
        const row = fence.get(runId)
        if (row !== undefined) at = toFencedRun(row)
      }
      if (at === undefined || at.epoch !== epoch || at.lastSeq !== afterSeq) {
        throw new AppError(
          'run_fenced',
          'Another writer owns this run now, or its journal has moved on. Stop working on it here.',
          {
            details: {
              runId,
              epoch,
              afterSeq,
              ...(at === undefined ? {} : { found: { epoch: at.epoch, lastSeq: at.lastSeq } }),
            },
          },
        )
      }
      if (cached === undefined) return cache.add(runId, at)
      cache.remember(runId, cached)
      return cached
    },

    patch(runId: string, entry: CachedRun, change: RunChange): void {
      const ended = change.status !== undefined && terminal.has(change.status)
      const done = releasesRun(change)
      if (done) journal.foldEvents(runId, entry)
      patch.run(
        ended ? 1 : 0,
        change.release === true ? 1 : 0,
        change.status ?? null,
        change.attempt ?? null,
        change.startedAt ?? null,
        change.endedAt ?? null,
        change.error === undefined ? 0 : 1,
        toJson(change.error),
        change.wakeAt === undefined ? 0 : 1,
        change.wakeAt ?? null,
        change.cacheKey ?? null,
        change.engine ?? null,
        toJson(change.usage),
        entry.lastSeq,
        runId,
      )
      if (done) cache.remove(runId)
    },

    claim(request: Commands['claim']['takes']): ClaimedRun[] {
      const { now, leaseNow, offers } = request
      const limit = Math.max(0, Math.min(request.limit, this.freeSlots(request)))
      const due = claimable.all({ now, leaseNow, limit, offers: JSON.stringify(offers) })
      return [...due, ...toCancel.all({ leaseNow })]
        .sort((a, b) => (a.position as number) - (b.position as number))
        .map((row) => {
          const run = this.take(row.id as string, request)
          return row.lease_owner === null ? run : { ...run, takenFrom: row.lease_owner as string }
        })
    },

    unplaceable(request: Commands['unplaceableRuns']['takes']): RunRow[] {
      return unplaceableRuns.all(request).map(current)
    },

    claimUnplaceable({ runId, now, lease }: Commands['claimUnplaceable']['takes']): RunRow | null {
      const { leaseNow } = lease
      return isUnplaceable.get({ runId, now, leaseNow }) === undefined ? null : this.take(runId, lease)
    },

    freeSlots({ slots, leaseNow }: Lease): number {
      return slots === undefined ? Number.MAX_SAFE_INTEGER : slots - (slotsInUse.get(leaseNow)?.count as number)
    },

    /** Gives the node the lease on the run, with a new epoch. */
    take(runId: string, { node, leaseUntil }: Lease): RunRow {
      const cached = cache.get(runId)
      const row = take.get(node, leaseUntil, cached?.lastSeq ?? 0, runId) as Row
      if (cached === undefined) cache.add(runId, toFencedRun(row))
      else {
        cache.remember(runId, cached)
        cached.epoch = row.epoch as number
      }
      return current(row)
    },

    renewLeases({ node, leaseUntil, runIds }: Commands['renewLeases']['takes']): RunRow[] {
      return renew.all(leaseUntil, JSON.stringify(runIds), node).map(current)
    },

    requestCancel({ runId, cancel: request }: Commands['requestCancel']['takes']): RunRow | null {
      const recorded = cancel.run(request.by, request.reason, request.at, runId).changes
      if (recorded > 0) wake.run(runId)
      return read(runId) ?? null
    },

    wake(runId: string): void {
      wake.run(runId)
    },

    /** Removes the run with its events and, by cascade, its interactions, blobs and idempotency keys. */
    remove(runId: string): void {
      journal.remove(runId)
      remove.run(runId)
      cache.remove(runId)
    },

    expire({ endedBefore, limit }: Commands['expireRuns']['takes']): number {
      const ids = expired.all(endedBefore, limit).map((row) => row.id as string)
      for (const id of ids) this.remove(id)
      return ids.length
    },

    removeEnded({ owner, families, limit }: Commands['removeEndedRuns']['takes']): { removed: number; cached: number } {
      const rows = endedOf.all(owner, JSON.stringify(families), limit)
      for (const row of rows) this.remove(row.id as string)
      return { removed: rows.length, cached: rows.filter((row) => row.cache_key !== null).length }
    },

    /** True if this call released the hold; false if the run was not held any more, or was cancelled or claimed. */
    unhold(runId: string, skillId: string | undefined): boolean {
      return unhold.run(skillId ?? null, runId).changes > 0
    },

    /** True if the run waits for its turn, and nothing is known against it. */
    isQueued(runId: string): boolean {
      return queued.get(runId) !== undefined
    },

    dropBlobs(runId: string, prefix: string): void {
      dropBlobs.run(runId, prefix, prefix)
    },

    putBlob({ id, runId, body }: Commands['putBlob']['takes']): void {
      if (fence.get(runId) === undefined) {
        throw new AppError('run_not_found', 'The run that this output belongs to does not exist.', {
          details: { runId },
        })
      }
      putBlob.run(id, runId, body)
    },
  }
}

function toFencedRun(row: Row): FencedRun {
  return {
    epoch: row.epoch as number,
    lastSeq: row.last_seq as number,
    conversationId: row.conversation_id as string | null,
    turn: (row.turn ?? row.position) as number,
  }
}
