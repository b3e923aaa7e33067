// Writes the runs table: claims, leases, cancel requests, the row changes of an append, and
// removal. Used inside the transaction of a command.

import { AppError } from '../../errors/app-error.ts'
import { isTerminal } from '../../journal/event.ts'
import type { CancelRequest, ClaimedRun, ClaimRequest, LeaseRequest, RunRow, RunWrite } from '../run-store.ts'
import type { Db } from './connection.ts'
import { toJson } from './json-column.ts'
import { fenced } from './delta-queue.ts'
import { readRun, toRunRow, unfinished } from './run-rows.ts'

/** Throws `run_fenced` unless `epoch` and `afterSeq` are current. The row stays locked until the transaction ends. */
export async function checkFence(db: Db, runId: string, epoch: number | null, afterSeq: number): Promise<void> {
  const row = await db.get('SELECT epoch, last_seq FROM runs WHERE id = ? FOR NO KEY UPDATE', runId)
  const found = row === undefined ? undefined : { epoch: row['epoch'] as number, lastSeq: row['last_seq'] as number }
  if (found === undefined || (epoch !== null && found.epoch !== epoch) || found.lastSeq !== afterSeq) {
    throw fenced(runId, epoch ?? found?.epoch ?? 0, afterSeq, found)
  }
}

export async function setLastSeq(db: Db, runId: string, lastSeq: number): Promise<void> {
  await db.run('UPDATE runs SET last_seq = ? WHERE id = ?', lastSeq, runId)
}

/** A wake-up that came while the owner worked (`woken_at`) wins over a later one that the owner asks for when it parks the run. */
export async function patchRun(
  db: Db,
  runId: string,
  lastSeq: number,
  change: NonNullable<RunWrite['run']>,
): Promise<void> {
  const ended = change.status !== undefined && isTerminal(change.status) ? 1 : 0
  const release = change.release === true ? 1 : 0
  await db.run(
    `UPDATE runs SET
       status = coalesce(?, status),
       attempt = coalesce(?::integer, attempt),
       started_at = coalesce(?::bigint, started_at),
       ended_at = coalesce(?::bigint, ended_at),
       error = CASE WHEN ?::integer = 1 THEN ? ELSE error END,
       wake_at = CASE WHEN ?::integer = 0 THEN wake_at
                      WHEN woken_at IS NULL OR ?::integer = 1 THEN ?::bigint
                      ELSE least(woken_at, ?::bigint) END,
       cache_key = coalesce(?, cache_key),
       engine = coalesce(?, engine),
       usage = coalesce(?, usage),
       share_key = CASE WHEN ?::integer = 1 THEN NULL ELSE share_key END,
       lease_owner = CASE WHEN ?::integer = 1 THEN NULL ELSE lease_owner END,
       lease_until = CASE WHEN ?::integer = 1 THEN NULL ELSE lease_until END,
       last_seq = ?
     WHERE id = ?`,
    change.status ?? null,
    change.attempt ?? null,
    change.startedAt ?? null,
    change.endedAt ?? null,
    change.error === undefined ? 0 : 1,
    toJson(change.error),
    change.wakeAt === undefined ? 0 : 1,
    ended,
    change.wakeAt ?? null,
    change.wakeAt ?? null,
    change.cacheKey ?? null,
    change.engine ?? null,
    toJson(change.usage),
    ended,
    release,
    release,
    lastSeq,
    runId,
  )
}

/** One call of a function in the database, which says why there. */
export async function claimRuns(db: Db, request: ClaimRequest): Promise<ClaimedRun[]> {
  const { node, leaseMs, limit, slots, offers = [] } = request
  const rows = await db.all(
    'SELECT (claimed.run).*, claimed.taken_from FROM claim_runs(?, ?, ?, ?, ?) AS claimed',
    node,
    leaseMs,
    Math.max(limit, 0),
    slots ?? null,
    offers,
  )
  return rows
    .sort((a, b) => (a['position'] as number) - (b['position'] as number))
    .map((row) => {
      const takenFrom = row['taken_from'] as string | null
      return takenFrom === null ? toRunRow(row) : { ...toRunRow(row), takenFrom }
    })
}

/** Runs that could be executed now, except that no live node offers what they need. */
const unplaceable = `needs IS NOT NULL AND ${unfinished} AND cancel_at IS NULL
  AND (lease_owner IS NULL OR lease_until <= polylog_now())
  AND ((held = 0 AND status IN ('queued', 'running')) OR wake_at <= polylog_now())
  AND NOT EXISTS (
    SELECT 1 FROM nodes WHERE draining = 0 AND seen_at + lease_ms > polylog_now()
      AND runs.needs <@ ARRAY (SELECT jsonb_array_elements_text(nodes.offers::jsonb)))`

export async function unplaceableRuns(db: Db, limit: number): Promise<RunRow[]> {
  return (await db.all(`SELECT * FROM runs WHERE ${unplaceable} ORDER BY position LIMIT ?`, limit)).map(toRunRow)
}

export async function claimUnplaceable(
  db: Db,
  runId: string,
  { node, leaseMs }: LeaseRequest,
): Promise<RunRow | undefined> {
  const row = await db.get(
    `UPDATE runs SET epoch = epoch + 1, lease_owner = ?, lease_until = polylog_now() + ?, woken_at = NULL
     WHERE id = ? AND ${unplaceable} RETURNING *`,
    node,
    leaseMs,
    runId,
  )
  return row === undefined ? undefined : toRunRow(row)
}

/** Gives `node` the lease on the run, with a new epoch. */
export async function takeRun(db: Db, runId: string, { node, leaseMs }: LeaseRequest): Promise<RunRow> {
  const row = await db.get(
    'UPDATE runs SET epoch = epoch + 1, lease_owner = ?, lease_until = polylog_now() + ?, woken_at = NULL WHERE id = ? RETURNING *',
    node,
    leaseMs,
    runId,
  )
  if (row === undefined) throw new AppError('internal_error', 'The run that was just written cannot be read back.')
  return toRunRow(row)
}

/** In the order of the ids, as every statement that locks several runs. */
export async function renewLeases(
  db: Db,
  { node, leaseMs }: LeaseRequest,
  runIds: readonly string[],
): Promise<RunRow[]> {
  const rows = await db.all(
    `UPDATE runs SET lease_until = polylog_now() + ? WHERE id IN (
       SELECT id FROM runs WHERE id = ANY (?) AND lease_owner = ? AND ${unfinished} ORDER BY id FOR NO KEY UPDATE)
     RETURNING *`,
    leaseMs,
    runIds,
    node,
  )
  return rows.map(toRunRow)
}

export async function requestCancel(db: Db, runId: string, cancel: CancelRequest): Promise<RunRow | undefined> {
  await db.run(
    `UPDATE runs SET cancel_by = ?, cancel_reason = ?, cancel_at = ?, woken_at = 0, wake_at = 0
     WHERE id = ? AND cancel_at IS NULL AND ${unfinished}`,
    cancel.by,
    cancel.reason,
    cancel.at,
    runId,
  )
  return await readRun(db, runId)
}

/** 0 is always due. The time of the decision would not be, if the clock is set back after it. */
export async function wakeRun(db: Db, runId: string): Promise<void> {
  await db.run(`UPDATE runs SET woken_at = 0, wake_at = 0 WHERE id = ? AND ${unfinished}`, runId)
}

export async function putBlob(db: Db, id: string, runId: string, body: string): Promise<void> {
  if ((await db.get('SELECT 1 AS found FROM runs WHERE id = ?', runId)) === undefined) {
    throw new AppError('run_not_found', 'The run that this output belongs to does not exist.', { details: { runId } })
  }
  await db.run(
    'INSERT INTO blobs (id, run_id, body) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body',
    id,
    runId,
    body,
  )
}
