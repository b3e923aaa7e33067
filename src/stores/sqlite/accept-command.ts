// Accepts runs in the writer thread. All checks come before the first write, so a
// refused accept leaves nothing behind. The idempotency key must stay the first check:
// a repeated request has to find its run even if the conversation has changed or the
// queue has filled up in the meantime.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { filesOf } from '../../journal/message-parts.ts'
import type { AcceptResult, AnsweredRequest, RunRow } from '../run-store.ts'
import type { Commands } from './commands.ts'
import type { Row } from './connection.ts'
import type { ConversationWriter } from './conversation-store.ts'
import type { FileWriter } from './file-store.ts'
import type { JournalWriter } from './journal-writer.ts'
import type { MessageWriter } from './message-store.ts'
import type { RunCache } from './run-cache.ts'
import { toRunRow, unfinished } from './run-rows.ts'
import type { RunTable } from './run-table.ts'
import type { SnapshotWriter } from './snapshot-store.ts'

type AcceptCommand = Commands['accept']['takes']
type HeldCommand = Commands['startHeld']['takes']

export function acceptHandlers(
  db: DatabaseSync,
  cache: RunCache,
  writers: {
    runs: RunTable
    conversations: ConversationWriter
    messages: MessageWriter
    files: FileWriter
    journal: JournalWriter
    snapshots: SnapshotWriter
  },
  isAcknowledged: () => boolean,
) {
  const { runs, conversations, messages, files, journal, snapshots } = writers
  const newestOpen = db.prepare(
    `SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} ORDER BY position DESC LIMIT 1`,
  )
  const newestOpenBefore = db.prepare(
    `SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} AND coalesce(turn, position) < ? ORDER BY position DESC LIMIT 1`,
  )
  const openBefore = db.prepare(
    `SELECT id FROM runs WHERE conversation_id = ? AND ${unfinished} AND coalesce(turn, position) < ?`,
  )
  const turnOfOpen = db.prepare(
    `SELECT coalesce(turn, position) AS turn FROM runs WHERE id = ? AND conversation_id = ? AND owner = ? AND ${unfinished}`,
  )
  const countQueued = db.prepare(
    `SELECT count(*) AS count FROM runs WHERE ${unfinished} AND status = 'queued' AND held = 0 AND lease_owner IS NULL`,
  )
  const countHeld = db.prepare(
    `SELECT count(*) AS total, coalesce(sum(owner = ?), 0) AS own FROM runs WHERE ${unfinished} AND status = 'queued' AND held = 1`,
  )
  const openShared = db.prepare(
    `SELECT id FROM runs WHERE owner = ? AND share_key = ? AND ${unfinished} AND cancel_at IS NULL ORDER BY position LIMIT 1`,
  )
  const insertRun = db.prepare(
    `INSERT INTO runs (id, owner, family, agent_id, conversation_id, status, attempt, epoch, last_seq, created_at, turn, held, skill_id, wake_at,
       share_key, needs, lease_owner, lease_until, slot, started_at, engine)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`,
  )
  const insertKey = db.prepare(
    'INSERT INTO idempotency_keys (owner, route, key, fingerprint, run_id, reused) VALUES (?, ?, ?, ?, ?, ?)',
  )

  return { accept, startHeld, bindIdempotencyKey }

  /** The run that an idempotency key is bound to. Throws if the key was used for another request. */
  function boundTo(request: { owner: string; route: string; key: string; fingerprint: string }) {
    const known = runs.reader.idempotent(request.owner, request.route, request.key)
    if (known !== undefined && known.fingerprint !== request.fingerprint) {
      throw new AppError(
        'idempotency_key_reused',
        'This idempotency key was used for another request. Send a new key with a new request.',
        { details: { key: request.key } },
      )
    }
    return known
  }

  function bindIdempotencyKey(request: AnsweredRequest): null {
    if (boundTo(request) !== undefined || runs.read(request.runId) === undefined) return null
    insertKey.run(request.owner, request.route, request.key, request.fingerprint, request.runId, 1)
    return null
  }

  function startHeld({ runId, afterSeq, skillId, journal: part, blobs, queueMax, claim: wanted }: HeldCommand): RunRow {
    const claim = wanted !== null && runs.freeSlots(wanted) > 0 ? wanted : null
    const found = runs.read(runId)
    if (found === undefined || !runs.unhold(runId, skillId)) {
      throw new AppError('run_fenced', 'The run was started, cancelled or removed before.', { details: { runId } })
    }
    // `unhold` has already added this run to the count, hence > and not >=.
    if (claim === null && (countQueued.get()?.count as number) > queueMax) throw queueFull(queueMax)
    const entry = runs.checkFence(runId, found.epoch, afterSeq)
    for (const blob of blobs) runs.putBlob({ ...blob, runId })
    if (part !== null) journal.insert(runId, entry, part)
    if (claim !== null) return runs.take(runId, claim)
    journal.fold(runId, entry)
    cache.remove(runId)
    return runs.read(runId) ?? found
  }

  function refuseIfTooManyAreHeld(owner: string, max: { owner: number; all: number }): void {
    const { total, own } = countHeld.get(owner) as { total: number; own: number }
    if (own < max.owner && total < max.all) return
    const whose = own < max.owner ? `${total} jobs` : `${own} jobs of yours`
    throw new AppError(
      'jobs_awaiting_upload',
      `${whose} wait for their upload, which is as many as may; upload to them or cancel some first.`,
    )
  }

  function accept(input: AcceptCommand): AcceptResult {
    const { run, idempotency, conversation } = input
    if (idempotency !== null) {
      const known = boundTo({ owner: run.owner, ...idempotency })
      if (known !== undefined) {
        const existing = runs.read(known.runId)
        if (existing !== undefined)
          return { outcome: 'existing', run: existing, ...(known.reused ? { reused: true } : {}) }
      }
    }
    const cached = input.reuse === undefined ? undefined : runs.reader.cached(run.owner, input.reuse.cacheKey)
    const earlier = cached === undefined ? undefined : runs.read(cached)
    if (earlier !== undefined) {
      if (idempotency !== null) {
        insertKey.run(run.owner, idempotency.route, idempotency.key, idempotency.fingerprint, earlier.id, 1)
      }
      return { outcome: 'existing', run: earlier, reused: true }
    }

    if (input.share !== undefined) {
      const { key, unlessSnapshot } = input.share
      const open = openShared.get(run.owner, key)
      const shared = open === undefined ? undefined : runs.read(open.id as string)
      if (shared !== undefined) {
        if (idempotency !== null) {
          insertKey.run(run.owner, idempotency.route, idempotency.key, idempotency.fingerprint, shared.id, 0)
        }
        return { outcome: 'existing', run: shared, shared: true }
      }
      if (unlessSnapshot !== undefined && snapshots.reader.find(unlessSnapshot, run.createdAt) !== undefined) {
        throw stale('There is a snapshot now that answers the request.')
      }
    }

    const { first, turn } = checkConversation(input)
    const { held } = input
    const wanted = first && held === undefined ? input.claim : null
    // A run that was acknowledged from the log has its slot: the main thread has counted them.
    const claim = wanted !== null && (isAcknowledged() || runs.freeSlots(wanted) > 0) ? wanted : null
    if (claim === null && held === undefined && (countQueued.get()?.count as number) >= input.queueMax)
      throw queueFull(input.queueMax)
    if (held?.max !== undefined) refuseIfTooManyAreHeld(run.owner, held.max)
    for (const { parts } of input.messages) {
      if (parts !== undefined)
        files.check(
          run.owner,
          filesOf(parts).map(({ fileId }) => fileId),
        )
    }

    if (conversation !== null && run.conversationId !== null) {
      if (conversation.expect === 'absent') {
        conversations.create(
          {
            id: run.conversationId,
            owner: run.owner,
            title: conversation.title,
            createdAt: run.createdAt,
            updatedAt: run.createdAt,
          },
          conversation.unnamed,
        )
      } else conversations.startTurn(run.conversationId, conversation.title, run.createdAt)
      for (const name of [conversation.name, conversation.alias]) {
        if (name != null) conversations.bindName(run.owner, name, run.conversationId)
      }
    }
    if (input.cancelEarlier !== undefined) {
      // Runs before the insert, so that the new run does not cancel itself. The turn that it joins is not cancelled either.
      for (const row of openBefore.all(run.conversationId, turn ?? Number.MAX_SAFE_INTEGER))
        runs.requestCancel({ runId: row.id as string, cancel: input.cancelEarlier })
    }
    const start = claim === null ? undefined : input.start
    const journalPart =
      start === undefined || input.journal === null
        ? input.journal
        : { id: input.journal.id, lastSeq: start.lastSeq, body: `${input.journal.body}\n${start.body}` }
    const lastSeq = journalPart?.lastSeq ?? 0
    const epoch = claim === null ? 0 : 1
    // A run that is claimed is inserted with its lease: each update of the row would write its indexes again.
    const inserted = insertRun.get(
      run.id,
      run.owner,
      run.family,
      run.agentId,
      run.conversationId,
      start === undefined ? 'queued' : 'running',
      input.attempt,
      epoch,
      lastSeq,
      run.createdAt,
      turn,
      held === undefined ? 0 : 1,
      run.skillId ?? null,
      held?.until ?? null,
      input.share?.key ?? null,
      run.needs === undefined || run.needs.length === 0 ? null : JSON.stringify(run.needs),
      claim?.node ?? null,
      claim?.leaseUntil ?? null,
      claim === null ? 0 : 1,
      start?.at ?? null,
      start?.engine ?? null,
    ) as Row
    const position = inserted.position as number
    for (const message of input.messages) messages.insert(message, turn ?? position)
    files.refer({ runId: run.id }, input.files ?? [])
    for (const blob of input.blobs ?? []) runs.putBlob({ ...blob, runId: run.id })
    if (idempotency !== null) {
      insertKey.run(run.owner, idempotency.route, idempotency.key, idempotency.fingerprint, run.id, 0)
    }
    const { conversationId } = run
    const entry = cache.add(run.id, { epoch, lastSeq: 0, conversationId, turn: turn ?? position })
    if (journalPart !== null) journal.insert(run.id, entry, journalPart)
    // A run that is not claimed yet gets no appends, and the queue may be long, so such runs are not cached.
    if (claim === null) {
      journal.foldEvents(run.id, entry)
      cache.remove(run.id)
    }
    return { outcome: 'accepted', run: toRunRow(inserted) }
  }

  /** The newest unfinished run of the conversation, or of its turns before the given one. */
  function newestOpenOf(conversationId: string, turn: number | null): string | null {
    const found = turn === null ? newestOpen.get(conversationId) : newestOpenBefore.get(conversationId, turn)
    return (found?.id ?? null) as string | null
  }

  /**
   * Throws `accept_stale` if the conversation is no longer as the caller saw it. `first`: no unfinished run is ahead of this one.
   * `turn`: the turn of the run that it joins, or null.
   */
  function checkConversation({ run, conversation, expectBehind, joinTurnOf }: AcceptCommand): {
    first: boolean
    turn: number | null
  } {
    if ((conversation === null) !== (run.conversationId === null)) {
      throw new AppError('internal_error', 'A run has a conversation id exactly when it says what it expects of it.')
    }
    if (conversation === null || run.conversationId === null) {
      if (joinTurnOf !== undefined)
        throw new AppError('internal_error', 'Only runs of a conversation have turns to join.')
      return { first: true, turn: null }
    }
    const row = conversations.reader.read(run.conversationId)
    if (conversation.expect === 'absent' ? row !== undefined : row?.owner !== run.owner) {
      throw stale(`The conversation is ${row === undefined ? 'gone' : 'there already'}.`)
    }
    if (conversation.name !== null) {
      const bound = conversations.reader.byName(run.owner, conversation.name)
      if (bound !== undefined && bound.id !== run.conversationId) throw stale('The name has a conversation already.')
    }
    let turn: number | null = null
    if (joinTurnOf !== undefined) {
      turn = (turnOfOpen.get(joinTurnOf, run.conversationId, run.owner)?.turn ?? null) as number | null
      if (turn === null) throw stale('The run whose turn this one joins has ended.')
    }
    const newest = row === undefined ? null : newestOpenOf(run.conversationId, turn)
    if (newest !== expectBehind) throw stale('Another run came or ended in the conversation.')
    return { first: newest === null, turn }
  }
}

function queueFull(queueMax: number): AppError {
  return new AppError('queue_full', 'Too many runs are waiting for their turn. Try again in a moment.', {
    details: { queueMax },
  })
}

function stale(what: string): AppError {
  return new AppError('accept_stale', `${what} Read again, then retry.`)
}
