// The store in one SQLite file. Writes go through the commit queue, to a log and to a worker
// thread. Reads use a connection of the main thread and see every acknowledged write. The
// process lock makes sure that only one process uses the file.

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { archiveStore } from './archive-store.ts'
import { CommandLog } from './command-log.ts'
import { CommitQueue } from './commit-queue.ts'
import { comparisonStore } from './comparison-store.ts'
import { openReader } from './connection.ts'
import { contactActivityStore } from './contact-activity-store.ts'
import { contactRecordStore } from './contact-record-store.ts'
import { contactStore } from './contact-store.ts'
import { conversationStore } from './conversation-store.ts'
import { feedbackStore } from './feedback-store.ts'
import { feedStore } from './feed-store.ts'
import { fileStore } from './file-store.ts'
import { interactionStore } from './interaction-store.ts'
import { JournalTails } from './journal-tails.ts'
import { keyStore } from './key-store.ts'
import { hasRoomForLog, logCheck } from './log-check.ts'
import { messageStore } from './message-store.ts'
import { nodeStore } from './node-store.ts'
import { noteStore } from './note-store.ts'
import type { PartAccess } from './part-access.ts'
import { lockFile, type ProcessLock } from './process-lock.ts'
import { runStore, type StoreClock } from './run-store.ts'
import { snapshotStore } from './snapshot-store.ts'
import { toStoreError } from './sqlite-errors.ts'
import { upkeepStore } from './upkeep-store.ts'
import { usageStore } from './usage-store.ts'
import { workspaceStore } from './workspace-store.ts'
import { giveBackWriter, startWriter } from './writer-threads.ts'

/** Long enough to batch the deltas of many runs, short compared to the time between two tokens. */
const commitGatherMsDefault = 4

export type SqliteOptions = {
  file: string
  /** Minimum time between the starts of two commits that hold only deltas. */
  commitGatherMs?: number
  /** Paces commits, and judges leases and deadlines unless `time` does. */
  clock: Clock
  /** Judges leases and deadlines. Tests set it apart from `clock`, so that commits need not wait for it. */
  time?: StoreClock
  /** How long to wait for another server that is shutting down. Blocks the thread, because nothing can be served before. */
  lockWaitMs?: number
  /** Called for failed commits and when the writer thread ends, in addition to rejecting the waiting promises. */
  onError?: (error: unknown) => void
}

/** Throws `config_invalid` if another server uses the file or a newer version wrote it. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  mkdirSync(dirname(options.file), { recursive: true })
  const lock = locked(options)
  const writer = startWriter(options.file)
  try {
    const tails = new JournalTails()
    const queue = new CommitQueue(writer, {
      gatherMs: options.commitGatherMs ?? commitGatherMsDefault,
      clock: options.clock,
      onError: options.onError ?? (() => {}),
      onStored: ({ runId, id, firstSeq, lastSeq }) => tails.add(runId, id, firstSeq, lastSeq),
      onMerged: ({ runId, id, firstSeq, lastSeq }) => tails.merged(runId, id, firstSeq, lastSeq),
      openLog: (state) =>
        hasRoomForLog(options.file) ? new CommandLog(options.file, state, options.clock) : undefined,
      mayLog: logCheck(options.file, options.clock),
      onFolded: (runId, lastSeq) => tails.folded(runId, lastSeq),
    })
    await queue.opened()
    return storeOf(options, queue, tails, async (isReady) => {
      lock.release()
      await giveBackWriter(writer, isReady)
    })
  } catch (error) {
    await giveBackWriter(writer, false)
    lock.release()
    throw error
  }
}

function locked({ file, lockWaitMs = 0 }: SqliteOptions): ProcessLock {
  try {
    return lockFile(file, lockWaitMs)
  } catch (error) {
    throw toStoreError(error, `${file}.lock`)
  }
}

function storeOf(
  { file, clock, time = clock }: SqliteOptions,
  queue: CommitQueue,
  tails: JournalTails,
  /** Called when the file is closed. `isReady`: the writer can open another one. */
  release: (isReady: boolean) => Promise<void>,
): Store {
  const db = openReader(file)
  let closing: Promise<void> | undefined

  async function read<T>(query: () => T, about?: string): Promise<T> {
    // The reading connection does not see what only the log has.
    if (!queue.isReadable(about)) await queue.readable(about)
    return await readCommitted(query)
  }

  async function readCommitted<T>(query: () => T): Promise<T> {
    if (closing !== undefined) throw new AppError('store_unavailable', 'The store is closed. Start the server again.')
    try {
      return query()
    } catch (error) {
      throw toStoreError(error, file)
    }
  }

  const access: PartAccess = {
    db,
    read,
    isReadable: (about) => queue.isReadable(about),
    learn: (fact) => queue.learn(fact),
    isHistoryStored: (runId) => queue.isHistoryStored(runId),
    readCommitted,
    write: async (name, input, durable) => queue.run(name, input, durable),
  }
  return {
    ...runStore(access, queue, tails, time),
    ...conversationStore(access),
    ...messageStore(access),
    ...interactionStore(access),
    ...feedbackStore(access),
    ...comparisonStore(access),
    ...workspaceStore(access),
    ...noteStore(access),
    ...nodeStore(access, time),
    ...keyStore(access),
    ...fileStore(access),
    ...snapshotStore(access),
    ...usageStore(access),
    ...contactStore(access),
    ...contactRecordStore(access),
    ...contactActivityStore(access),
    ...archiveStore(access),
    ...feedStore(access, tails),
    ...upkeepStore(access, time),

    async check() {
      await queue.run('check', null)
    },

    close() {
      closing ??= queue.close().then((isReady) => {
        db.close()
        return release(isReady)
      })
      return closing
    },
  }
}
