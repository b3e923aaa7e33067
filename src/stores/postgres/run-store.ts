// Runs and their journals. An append writes its events together with the rows that are folds of
// them. Locks are always taken in one order: the conversation, then the run, then its rows.

import { AppError } from '../../errors/app-error.ts'
import { KeyedMutex } from '../../kit/keyed-mutex.ts'
import type { AcceptInput, RunStore, RunWrite } from '../run-store.ts'
import { acceptRun, bindIdempotencyKey, startHeld } from './accept-command.ts'
import { changeQueued } from './queued-command.ts'
import { insertComparison } from './comparison-store.ts'
import type { Db } from './connection.ts'
import { describeConversation, touchConversation } from './conversation-store.ts'
import type { DeltaQueue } from './delta-queue.ts'
import { referToFiles } from './file-store.ts'
import { insertInteraction, updateInteraction } from './interaction-store.ts'
import { insertJournal, type JournalRow, journalRows, readEvents } from './journal-table.ts'
import type { JournalPartitions } from './journal-partitions.ts'
import { insertMessage, setMessageStates } from './message-store.ts'
import type { PartAccess } from './part-access.ts'
import {
  countRuns,
  findCached,
  findIdempotent,
  listOpenRuns,
  listRuns,
  msSinceCrash,
  msUntilWake,
  openRuns,
  readRun,
} from './run-rows.ts'
import {
  checkFence,
  claimRuns,
  claimUnplaceable,
  patchRun,
  putBlob,
  renewLeases,
  requestCancel,
  setLastSeq,
  unplaceableRuns,
} from './run-table.ts'
import { slotRows } from './slot-table.ts'
import { insertSnapshot } from './snapshot-store.ts'
import { addStepUsage } from './usage-store.ts'

/** `transact` runs work in a transaction that need not be on disk if `durable` is false. */
export function runStore(
  { guarded, read, write }: PartAccess,
  transact: (durable: boolean, work: (db: Db) => Promise<void>) => Promise<void>,
  deltas: Pick<DeltaQueue, 'append'>,
  partitions: Pick<JournalPartitions, 'cover' | 'forget'>,
): RunStore {
  /** Appends of one run are written in the order in which they came. */
  const appends = new KeyedMutex()
  const needSlots = slotRows(write)

  async function appendNow(input: RunWrite): Promise<void> {
    const rows = journalRows(input.runId, input.afterSeq, input.events)
    const [only] = rows
    if (only !== undefined && rows.length === 1 && changesNoRow(input)) {
      await deltas.append(input.runId, input.epoch, only, input.durable)
    } else await transact(input.durable, (db) => append(db, input, rows))
  }

  /** In a transaction, with partitions for the events of the new runs. */
  async function accepting<T>(inputs: readonly AcceptInput[], work: (db: Db) => Promise<T>): Promise<T> {
    await guarded(() => partitions.cover(inputs.map(({ run }) => run.id)))
    try {
      return await write(work)
    } catch (error) {
      if (error instanceof AppError && error.code === 'store_unavailable') partitions.forget()
      throw error
    }
  }

  return {
    async accept(input) {
      await needSlots(input.claim)
      return await accepting([input], (db) => acceptRun(db, input))
    },
    async acceptAll(inputs, extraRows = {}) {
      await needSlots(inputs[0]?.claim)
      return await accepting(inputs, async (db) => {
        const results = []
        for (const input of inputs) results.push(await acceptRun(db, input))
        // A repeated request finds the existing runs, and the comparison that was created with them.
        if (extraRows.comparison !== undefined && results.every(({ outcome }) => outcome === 'accepted')) {
          await insertComparison(db, extraRows.comparison)
        }
        return results
      })
    },
    importRun: (input, ending) =>
      accepting([input], async (db) => {
        const { run } = await acceptRun(db, input)
        const write = { runId: run.id, epoch: run.epoch, afterSeq: run.lastSeq, events: [], durable: true, ...ending }
        await append(db, write, [])
      }),
    async startHeld(start) {
      await needSlots(start.claim)
      return await write((db) => startHeld(db, start))
    },
    changeQueued: (change) => write((db) => changeQueued(db, change)),
    append: (input) => guarded(() => appends.run(input.runId, () => appendNow(input))),
    async claim(request) {
      await needSlots(request)
      // One statement, which is its own transaction.
      return await read((db) => claimRuns(db, request))
    },
    unplaceableRuns: (limit) => read((db) => unplaceableRuns(db, limit)),
    claimUnplaceable: (runId, lease) => write((db) => claimUnplaceable(db, runId, lease)),
    renewLeases: (lease, runIds) => write((db) => renewLeases(db, lease, runIds)),
    requestCancel: (runId, cancel) => write((db) => requestCancel(db, runId, cancel)),

    readEvents: (runId, afterSeq, limit) => read((db) => readEvents(db, runId, afterSeq, limit)),
    readRun: (runId) => read((db) => readRun(db, runId)),
    readLastSeqs: (runIds) =>
      read(async (db) => {
        const rows = await db.all('SELECT id, last_seq FROM runs WHERE id = ANY (?)', runIds)
        return new Map(rows.map((row) => [row['id'] as string, row['last_seq'] as number]))
      }),
    listRuns: (filter) => read((db) => listRuns(db, filter)),
    listOpenRuns: (limit) => read((db) => listOpenRuns(db, limit)),
    openRuns: (conversationId) => read((db) => openRuns(db, conversationId)),
    findIdempotent: (owner, route, key) =>
      read(async (db) => {
        const found = await findIdempotent(db, owner, route, key)
        if (found === undefined) return undefined
        const { runId, fingerprint, reused } = found
        return { runId, fingerprint, ...(reused ? { reused: true as const } : {}) }
      }),
    bindIdempotencyKey: (request) => write((db) => bindIdempotencyKey(db, request)),
    findCached: (owner, cacheKey) => read((db) => findCached(db, owner, cacheKey)),
    msUntilWake: (node) => read((db) => msUntilWake(db, node)),
    msSinceCrash: () => read(msSinceCrash),
    countRuns: () => read(countRuns),

    putBlob: (id, runId, body) => write((db) => putBlob(db, id, runId, body)),
    countBlobs: (runId, prefix) =>
      read(async (db) => {
        const row = await db.get(
          'SELECT count(*) AS count FROM blobs WHERE run_id = ? AND starts_with(id, ?)',
          runId,
          prefix,
        )
        return Number(row?.['count'] ?? 0)
      }),
    readBlob: (id) =>
      read(async (db) => {
        const row = await db.get('SELECT run_id, body FROM blobs WHERE id = ?', id)
        return row === undefined ? undefined : { runId: row['run_id'] as string, body: row['body'] as string }
      }),

    expireRuns: (endedBefore, limit) =>
      write(async (db) => {
        // The events cannot be read without the row of the run, and `tidyJournal` removes them.
        await db.get(`SELECT set_config('polylog.keep_journal', 'on', true)`)
        // An array, because the rows of `IN (SELECT … LIMIT …)` may be chosen anew for every row, and then exceed the limit.
        return await db.run(
          `DELETE FROM runs WHERE id = ANY (ARRAY(
             SELECT id FROM runs WHERE ended_at < ? ORDER BY ended_at LIMIT ? FOR UPDATE SKIP LOCKED))`,
          endedBefore,
          limit,
        )
      }),
    removeRun: (runId) =>
      write(async (db) => (await db.run('DELETE FROM runs WHERE id = ? AND ended_at IS NOT NULL', runId)) > 0),
    removeEndedRuns: ({ owner, families, limit }) =>
      write(async (db) => {
        const rows = await db.all(
          `DELETE FROM runs WHERE id = ANY (ARRAY(
             SELECT id FROM runs WHERE owner = ? AND family = ANY (?) AND ended_at IS NOT NULL
             ORDER BY position LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING cache_key`,
          owner,
          families,
          limit,
        )
        return { removed: rows.length, cached: rows.filter((row) => row['cache_key'] !== null).length }
      }),
  }
}

async function append(db: Db, input: RunWrite, rows: readonly JournalRow[]): Promise<void> {
  const { runId } = input
  const run = await db.get('SELECT conversation_id, coalesce(turn, position) AS turn FROM runs WHERE id = ?', runId)
  const conversationId = (run?.['conversation_id'] ?? null) as string | null
  const messages = input.messages ?? []
  if (conversationId !== null && (messages.length > 0 || input.touchConversationAt !== undefined)) {
    await db.get('SELECT id FROM conversations WHERE id = ? FOR NO KEY UPDATE', conversationId)
  }
  await checkFence(db, runId, input.epoch, input.afterSeq)
  await insertJournal(db, runId, rows)
  for (const message of messages) await insertMessage(db, message, run?.['turn'] as number)
  await setMessageStates(db, input.messageStates ?? [])
  await referToFiles(db, { runId }, input.files ?? [])
  for (const row of input.newInteractions ?? []) await insertInteraction(db, row)
  for (const change of input.interactionUpdates ?? []) await updateInteraction(db, change)
  if (input.touchConversationAt !== undefined && conversationId !== null) {
    await touchConversation(db, conversationId, input.touchConversationAt)
  }
  for (const step of input.usage ?? []) await addStepUsage(db, step)
  if (input.snapshot !== undefined) await insertSnapshot(db, input.snapshot)
  if (input.describeConversation !== undefined) await describeConversation(db, input.describeConversation)
  if (input.dropBlobs !== undefined) {
    await db.run('DELETE FROM blobs WHERE run_id = ? AND starts_with(id, ?)', runId, input.dropBlobs)
  }
  const lastSeq = input.afterSeq + input.events.length
  if (input.run !== undefined) await patchRun(db, runId, lastSeq, input.run)
  else if (rows.length > 0) await setLastSeq(db, runId, lastSeq)
}

const journalFields: ReadonlySet<string> = new Set(['runId', 'epoch', 'afterSeq', 'events', 'durable'])

function changesNoRow(input: RunWrite): boolean {
  // Every other field changes rows, also one that is added to RunWrite later.
  for (const name in input) if (!journalFields.has(name) && input[name as keyof RunWrite] !== undefined) return false
  return true
}
