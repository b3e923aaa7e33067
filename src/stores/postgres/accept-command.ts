// Accepts runs. Checks come before writes, and a refused accept is rolled back. The idempotency
// key must stay the first check: a repeated request has to find its run even if the conversation
// has changed or the queue has filled up in the meantime.
//
// Two accepts for one conversation wait for each other at the row of the conversation, so the
// positions of its runs are in the order of their commits.

import { createHash } from 'node:crypto'
import { AppError } from '../../errors/app-error.ts'
import { filesOf } from '../../journal/message-parts.ts'
import type { AcceptInput, AcceptResult, AnsweredRequest, HeldStart, RunRow } from '../run-store.ts'
import { insertRow } from './columns.ts'
import type { Db, Value } from './connection.ts'
import {
  bindName,
  createConversation,
  findConversationByName,
  readConversation,
  startTurn,
} from './conversation-store.ts'
import { checkFiles, referToFiles } from './file-store.ts'
import { insertJournal, journalRows } from './journal-table.ts'
import { insertMessage } from './message-store.ts'
import { findCached, findIdempotent, readRun, toRunRow, unfinished } from './run-rows.ts'
import { checkFence, putBlob, requestCancel, setLastSeq, takeRun } from './run-table.ts'
import { takeSlot } from './slot-table.ts'
import { findSnapshot } from './snapshot-store.ts'

/** The run that an idempotency key is bound to. Throws if the key was used for another request. */
async function boundTo(db: Db, request: { owner: string; route: string; key: string; fingerprint: string }) {
  const known = await findIdempotent(db, request.owner, request.route, request.key)
  if (known !== undefined && known.fingerprint !== request.fingerprint) {
    throw new AppError(
      'idempotency_key_reused',
      'This idempotency key was used for another request. Send a new key with a new request.',
      { details: { key: request.key } },
    )
  }
  return known
}

async function insertKey(
  db: Db,
  owner: string,
  idempotency: AcceptInput['idempotency'],
  runId: string,
  reused: 0 | 1,
): Promise<void> {
  if (idempotency === null) return
  const { route, key, fingerprint } = idempotency
  await insertRow(db, 'idempotency_keys', { owner, route, key, fingerprint, run_id: runId, reused })
}

export async function bindIdempotencyKey(db: Db, request: AnsweredRequest): Promise<void> {
  if ((await boundTo(db, request)) !== undefined || (await readRun(db, request.runId)) === undefined) return
  await insertKey(db, request.owner, request, request.runId, 1)
}

export async function startHeld(db: Db, start: HeldStart): Promise<RunRow> {
  const { runId, afterSeq, events, skillId, blobs, queueMax } = start
  const released = await db.run(
    `UPDATE runs SET held = 0, wake_at = NULL, skill_id = coalesce(?, skill_id)
     WHERE id = ? AND held = 1 AND status = 'queued' AND cancel_at IS NULL AND lease_owner IS NULL`,
    skillId ?? null,
    runId,
  )
  if (released === 0) {
    throw new AppError('run_fenced', 'The run was started, cancelled or removed before.', { details: { runId } })
  }
  const claim = start.claim !== null && (await takeSlot(db, runId, start.claim)) ? start.claim : null
  // The update has already added this run to the count.
  if (claim === null) await refuseIfQueueIsFull(db, queueMax + 1)
  await checkFence(db, runId, null, afterSeq)
  for (const blob of blobs) await putBlob(db, blob.id, runId, blob.body)
  await insertJournal(db, runId, journalRows(runId, afterSeq, events))
  await setLastSeq(db, runId, afterSeq + events.length)
  if (claim !== null) return await takeRun(db, runId, claim)
  return (await readRun(db, runId)) as RunRow
}

export async function acceptRun(db: Db, input: AcceptInput): Promise<AcceptResult> {
  const { run, idempotency, conversation, held } = input
  if (idempotency !== null) {
    const known = await boundTo(db, { owner: run.owner, ...idempotency })
    const existing = known === undefined ? undefined : await readRun(db, known.runId)
    if (existing !== undefined) {
      return { outcome: 'existing', run: existing, ...(known?.reused === true ? { reused: true as const } : {}) }
    }
  }
  const answered = await answeredBefore(db, input)
  if (answered !== undefined) return answered

  const { first, turn } = await checkConversation(db, input)
  const wanted = first && held === undefined ? input.claim : null
  const claim = wanted !== null && (await takeSlot(db, run.id, wanted)) ? wanted : null
  if (claim === null && held === undefined) await refuseIfQueueIsFull(db, input.queueMax)
  if (held?.max !== undefined) await refuseIfTooManyAreHeld(db, run.owner, held.max)
  const sent = input.messages.flatMap(({ parts = [] }) => filesOf(parts).map(({ fileId }) => fileId))
  await checkFiles(db, run.owner, sent)

  if (conversation !== null && run.conversationId !== null) {
    if (conversation.expect === 'absent') {
      await createConversation(
        db,
        {
          id: run.conversationId,
          owner: run.owner,
          title: conversation.title,
          createdAt: run.createdAt,
          updatedAt: run.createdAt,
        },
        conversation.unnamed,
      )
    } else await startTurn(db, run.conversationId, conversation.title, run.createdAt)
    for (const name of [conversation.name, conversation.alias]) {
      if (name != null) await bindName(db, run.owner, name, run.conversationId)
    }
    if (conversation.name !== null) await refuseIfNamedOtherwise(db, run.owner, conversation.name, run.conversationId)
  }
  if (input.cancelEarlier !== undefined) {
    // Before the insert, so that the new run does not cancel itself. The turn that it joins is not cancelled either.
    const earlier = await db.all(
      `SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} AND coalesce(turn, position) < ? ORDER BY id`,
      run.conversationId,
      turn ?? Number.MAX_SAFE_INTEGER,
    )
    for (const row of earlier) await requestCancel(db, row['id'] as string, input.cancelEarlier)
  }
  const start = claim === null ? undefined : input.start
  const events = start === undefined ? input.events : [...input.events, ...start.events]
  const [inserted] = await insertRow(
    db,
    'runs',
    {
      id: run.id,
      owner: run.owner,
      family: run.family,
      agent_id: run.agentId,
      conversation_id: run.conversationId,
      status: start === undefined ? 'queued' : 'running',
      started_at: start?.at ?? null,
      engine: start?.engine ?? null,
      attempt: input.events.at(-1)?.attempt ?? 1,
      epoch: claim === null ? 0 : 1,
      lease_owner: claim?.node ?? null,
      lease_until: claim === null ? null : await leaseEnd(db, claim.leaseMs),
      last_seq: events.length,
      created_at: run.createdAt,
      turn,
      held: held === undefined ? 0 : 1,
      skill_id: run.skillId ?? null,
      wake_at: held?.until ?? null,
      share_key: input.share?.key ?? null,
      needs: run.needs === undefined || run.needs.length === 0 ? null : run.needs,
    },
    'RETURNING *',
  )
  if (inserted === undefined) throw new AppError('internal_error', 'The accepted run cannot be read back.')
  for (const message of input.messages) await insertMessage(db, message, turn ?? (inserted['position'] as number))
  await referToFiles(db, { runId: run.id }, input.files ?? [])
  for (const blob of input.blobs ?? []) await putBlob(db, blob.id, run.id, blob.body)
  await insertKey(db, run.owner, idempotency, run.id, 0)
  await insertJournal(db, run.id, journalRows(run.id, 0, events))
  return { outcome: 'accepted', run: toRunRow(inserted) }
}

async function leaseEnd(db: Db, leaseMs: number): Promise<number> {
  return (await db.get('SELECT polylog_now() + ? AS until', leaseMs))?.['until'] as number
}

/** The run that answers the request already: one with the same cache key, or an open one that the request may share. */
async function answeredBefore(db: Db, input: AcceptInput): Promise<AcceptResult | undefined> {
  const { run, idempotency, reuse, share } = input
  const cached = reuse === undefined ? undefined : await findCached(db, run.owner, reuse.cacheKey)
  const earlier = cached === undefined ? undefined : await readRun(db, cached)
  if (earlier !== undefined) {
    await insertKey(db, run.owner, idempotency, earlier.id, 1)
    return { outcome: 'existing', run: earlier, reused: true }
  }
  if (share === undefined) return undefined
  // Equal requests that come at once find each other.
  await lockName(db, `share ${run.owner} ${share.key}`)
  const open = await db.get(
    `SELECT * FROM runs WHERE owner = ? AND share_key = ? AND ${unfinished} AND cancel_at IS NULL ORDER BY position LIMIT 1`,
    run.owner,
    share.key,
  )
  if (open !== undefined) {
    const shared = toRunRow(open)
    await insertKey(db, run.owner, idempotency, shared.id, 0)
    return { outcome: 'existing', run: shared, shared: true }
  }
  const { unlessSnapshot } = share
  if (unlessSnapshot !== undefined && (await findSnapshot(db, unlessSnapshot, run.createdAt)) !== undefined) {
    throw stale('There is a snapshot now that answers the request.')
  }
  return undefined
}

/**
 * Throws `accept_stale` if the conversation is no longer as the caller saw it. `first`: no unfinished run is ahead of this one.
 * `turn`: the turn of the run that it joins, or null. Locks the conversation.
 */
async function checkConversation(
  db: Db,
  { run, conversation, expectBehind, joinTurnOf }: AcceptInput,
): Promise<{ first: boolean; turn: number | null }> {
  if ((conversation === null) !== (run.conversationId === null)) {
    throw new AppError('internal_error', 'A run has a conversation id exactly when it says what it expects of it.')
  }
  if (conversation === null || run.conversationId === null) {
    if (joinTurnOf !== undefined)
      throw new AppError('internal_error', 'Only runs of a conversation have turns to join.')
    return { first: true, turn: null }
  }
  await db.get('SELECT id FROM conversations WHERE id = ? FOR NO KEY UPDATE', run.conversationId)
  const row = await readConversation(db, run.conversationId)
  if (conversation.expect === 'absent' ? row !== undefined : row?.owner !== run.owner) {
    throw stale(`The conversation is ${row === undefined ? 'gone' : 'there already'}.`)
  }
  if (conversation.name !== null) await refuseIfNamedOtherwise(db, run.owner, conversation.name, run.conversationId)
  let turn: number | null = null
  if (joinTurnOf !== undefined) {
    const joined = await db.get(
      `SELECT coalesce(turn, position) AS turn FROM runs WHERE id = ? AND conversation_id = ? AND owner = ? AND ${unfinished}`,
      joinTurnOf,
      run.conversationId,
      run.owner,
    )
    if (joined === undefined) throw stale('The run whose turn this one joins has ended.')
    turn = joined['turn'] as number
  }
  const values: Value[] = [run.conversationId, turn ?? Number.MAX_SAFE_INTEGER]
  const before = await db.get(
    `SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} AND coalesce(turn, position) < ? ORDER BY position DESC LIMIT 1`,
    ...values,
  )
  const newest = (before?.['id'] ?? null) as string | null
  if (newest !== expectBehind) throw stale('Another run came or ended in the conversation.')
  return { first: newest === null, turn }
}

async function refuseIfNamedOtherwise(db: Db, owner: string, name: string, conversationId: string): Promise<void> {
  const bound = await findConversationByName(db, owner, name)
  if (bound !== undefined && bound.id !== conversationId) throw stale('The name has a conversation already.')
}

/**
 * Accepts that run at the same time do not see each other's runs, so near the bound they are counted one after the other. Near
 * means that all connections of the database together could reach it: no more transactions can be open, and the largest one
 * accepts two runs (a comparison).
 */
async function refuseIfQueueIsFull(db: Db, queueMax: number): Promise<void> {
  const count = async () => {
    const row = await db.get(
      `SELECT count(*) AS count, 2 * current_setting('max_connections')::integer AS margin
       FROM runs WHERE ${unfinished} AND status = 'queued' AND held = 0 AND lease_owner IS NULL`,
    )
    return row as { count: number; margin: number }
  }
  const { count: before, margin } = await count()
  if (before < queueMax - margin) return
  await lockName(db, 'queue')
  if ((await count()).count >= queueMax) {
    throw new AppError('queue_full', 'Too many runs are waiting for their turn. Try again in a moment.', {
      details: { queueMax },
    })
  }
}

async function refuseIfTooManyAreHeld(db: Db, owner: string, max: { owner: number; all: number }): Promise<void> {
  await lockName(db, 'held')
  const row = await db.get(
    `SELECT count(*) AS total, count(*) FILTER (WHERE owner = ?) AS own FROM runs WHERE ${unfinished} AND status = 'queued' AND held = 1`,
    owner,
  )
  const { total, own } = row as { total: number; own: number }
  if (own < max.owner && total < max.all) return
  const whose = own < max.owner ? `${total} jobs` : `${own} jobs of yours`
  throw new AppError(
    'jobs_awaiting_upload',
    `${whose} wait for their upload, which is as many as may; upload to them or cancel some first.`,
  )
}

/** A lock on a name, until the transaction ends. Different names may share a lock, which only costs time. */
async function lockName(db: Db, name: string): Promise<void> {
  const key = createHash('sha256').update(name).digest().readInt32BE(0)
  await db.get('SELECT pg_advisory_xact_lock(?::integer, ?::integer) IS NULL AS locked', lockSpace, key)
}

/** The first half of our advisory locks, so that they do not meet those of other programs. */
const lockSpace = 0x706c6f67

function stale(what: string): AppError {
  return new AppError('accept_stale', `${what} Read again, then retry.`)
}
