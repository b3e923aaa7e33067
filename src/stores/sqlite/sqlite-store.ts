// The store in one SQLite file. Writes go through the commit queue to a worker
// thread; reads use a connection of the main thread and see everything that was
// acknowledged. One process at a time has the file, which the lock makes sure of.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { RunEvent } from '../../journal/event.ts'
import { encodeEvent } from '../../journal/event-codec.ts'
import type { Clock } from '../../kit/clock.ts'
import type { AcceptInput, RunRow, RunWrite } from '../run-store.ts'
import type { Store } from '../store.ts'
import { CommitQueue, type Place, startWriter } from './commit-queue.ts'
import { openReader } from './connection.ts'
import { comparisonReader } from './comparison-queries.ts'
import { conversationReader } from './conversation-queries.ts'
import { feedbackReader } from './feedback-queries.ts'
import { interactionReader } from './interaction-queries.ts'
import { journalReader } from './journal-reader.ts'
import { JournalTails } from './journal-tails.ts'
import { messageReader } from './message-queries.ts'
import { noteReader } from './note-queries.ts'
import { workspaceReader } from './workspace-queries.ts'
import { lockFile, type ProcessLock } from './process-lock.ts'
import { runReader } from './run-rows.ts'
import { toStoreError } from './sqlite-errors.ts'

/** Long enough for the deltas of many runs to meet, short beside the time between two tokens. */
const commitGatherMsDefault = 4

export type SqliteOptions = {
  file: string
  /** Commits of deltas start at least so long after the commit before. */
  commitGatherMs?: number
  /** Paces the commits only; nothing that is stored comes from it. */
  clock: Clock
  /** How long to wait for a server that is just going down. Blocks: nothing can be served before. */
  lockWaitMs?: number
  /** Hears of failed commits and of the end of the writer, beside those who waited for them. */
  onError?: (error: unknown) => void
}

/** Throws `config_invalid` when another server has the file or a newer version wrote it. */
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
      onFolded: (runId, lastSeq) => tails.folded(runId, lastSeq),
    })
    await queue.opened()
    return storeOf(options.file, queue, tails, () => lock.release())
  } catch (error) {
    await writer.terminate()
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

function storeOf(file: string, queue: CommitQueue, tails: JournalTails, unlock: () => void): Store {
  const db = openReader(file)
  const runs = runReader(db)
  const journal = journalReader(db, tails)
  const conversations = conversationReader(db)
  const messages = messageReader(db)
  const interactions = interactionReader(db)
  const notes = noteReader(db)
  const workspace = workspaceReader(db)
  const feedback = feedbackReader(db)
  const comparisons = comparisonReader(db)
  let closing: Promise<void> | undefined

  function reading<T>(question: () => T): T {
    if (closing !== undefined) throw new AppError('store_unavailable', 'The store is closed. Start the server again.')
    try {
      return question()
    } catch (error) {
      throw toStoreError(error, file)
    }
  }

  /** Deltas do not touch the run's row; their seq is known here. */
  function current(run: RunRow): RunRow {
    const lastSeq = tails.lastSeq(run.id)
    return lastSeq > run.lastSeq ? { ...run, lastSeq } : run
  }

  return {
    async accept(input) {
      const { command, place } = acceptCommand(input)
      return queue.run('accept', command, true, place)
    },

    async acceptAll(inputs, beside = {}) {
      const parts = inputs.map(acceptCommand)
      const commands = { inputs: parts.map((part) => part.command), beside }
      return queue.run('acceptAll', commands, true, ...parts.map((part) => part.place))
    },

    async startHeld({ events, ...start }) {
      const place = placeOf(start.runId, start.afterSeq, events)
      const journalPart = place === undefined ? null : { id: place.id, lastSeq: place.lastSeq, body: bodyOf(events) }
      return queue.run('startHeld', { ...start, journal: journalPart }, true, place)
    },

    async append(write) {
      const { events, durable, ...rest } = write
      const place = placeOf(write.runId, write.afterSeq, events)
      if (place !== undefined && changesNoRow(write)) {
        await queue.appendDelta(place, write.epoch, bodyOf(events), durable)
        return
      }
      const journalPart = place === undefined ? null : { id: place.id, lastSeq: place.lastSeq, body: bodyOf(events) }
      await queue.run('append', { ...rest, journal: journalPart }, durable, place)
    },

    claim: async (request) => queue.run('claim', request),
    renewLeases: async (node, leaseUntil, runIds) =>
      queue.run('renewLeases', { node, leaseUntil, runIds: [...runIds] }),
    requestCancel: async (runId, cancel) => (await queue.run('requestCancel', { runId, cancel })) ?? undefined,

    readRun: async (runId) =>
      reading(() => {
        const run = runs.read(runId)
        return run === undefined ? undefined : current(run)
      }),
    listRuns: async (filter) =>
      reading(() => {
        const { rows, more } = runs.list(filter)
        return { rows: rows.map(current), more }
      }),
    openRuns: async (conversationId) => reading(() => runs.open(conversationId).map(current)),
    findIdempotent: async (owner, route, key) =>
      reading(() => {
        const found = runs.idempotent(owner, route, key)
        return found === undefined ? undefined : { runId: found.runId, fingerprint: found.fingerprint }
      }),
    findCached: async (owner, cacheKey) => reading(() => runs.cached(owner, cacheKey)),
    readEvents: async (runId, afterSeq, limit) => reading(() => journal.read(runId, afterSeq, limit)),
    nextWakeAt: async () => reading(() => runs.nextWakeAt()),
    countRuns: async () => reading(() => runs.counts()),

    readInteraction: async (id) => reading(() => interactions.read(id)),
    listInteractions: async (filter) => reading(() => interactions.list(filter)),
    interactionsOf: async (runId) => reading(() => interactions.ofRun(runId)),
    decide: async (id, decision) => (await queue.run('decide', { id, decision })) ?? undefined,

    createConversation: async (row) => void (await queue.run('createConversation', row)),
    readConversation: async (id) => reading(() => conversations.read(id)),
    findConversationByName: async (owner, name) => reading(() => conversations.byName(owner, name)),
    newestUnnamedConversation: async (owner) => reading(() => conversations.newestUnnamed(owner)),
    listConversations: async (owner, page) => reading(() => conversations.list(owner, page)),
    listConversationsByLastMessage: async (owner, page) => reading(() => conversations.listByLastMessage(owner, page)),
    countConversations: async (prefix) => reading(() => conversations.count(prefix)),
    renameConversation: async (id, title, at) =>
      (await queue.run('renameConversation', { id, title, at })) ?? undefined,
    deleteConversation: async (id) => queue.run('deleteConversation', { id }),
    listMessages: async (conversationId, page) => reading(() => messages.list(conversationId, page)),
    pageOfAllMessages: async (conversationId, page) => reading(() => messages.pageOfAll(conversationId, page)),
    readMessage: async (id) => reading(() => messages.read(id)),
    allMessages: async (conversationId, filter) => reading(() => messages.all(conversationId, filter)),
    setMessageStates: async (states) => void (await queue.run('setMessageStates', states)),
    historyBefore: async (conversationId, beforeRunId, limit) =>
      reading(() => messages.historyBefore(conversationId, beforeRunId, limit)),

    react: async (row) => (await queue.run('react', row)) ?? undefined,
    addComment: async (row) => queue.run('addComment', row),
    feedbackOn: async (messageId, owner) => reading(() => feedback.on(messageId, owner)),
    feedbackIn: async (conversationId, owner) => reading(() => feedback.inConversation(conversationId, owner)),

    createComparison: async (row, messageStates) => queue.run('createComparison', { row, messageStates }),
    readComparison: async (id) => reading(() => comparisons.read(id)),
    findComparisonByRun: async (runId) => reading(() => comparisons.byRun(runId)),
    listComparisons: async (filter) => reading(() => comparisons.list(filter)),
    pendingComparisons: async (limit) => reading(() => comparisons.pending(limit)),
    settleComparison: async (id, outcome) => queue.run('settleComparison', { id, ...outcome }),
    voteComparison: async (id, vote) => (await queue.run('voteComparison', { id, vote })) ?? undefined,
    countVotes: async (owner) => reading(() => comparisons.votes(owner)),

    putBlob: async (id, runId, body) => void (await queue.run('putBlob', { id, runId, body })),
    countBlobs: async (runId, prefix) => reading(() => runs.countBlobs(runId, prefix)),
    readBlob: async (id) => reading(() => runs.blob(id)),

    readFileVersion: async (scope, path) => reading(() => workspace.file(scope, path)),
    saveFileVersion: async (row) => void (await queue.run('saveFileVersion', row)),
    readTodos: async (scope) => reading(() => workspace.todos(scope)),
    saveTodos: async (scope, todos, at) => void (await queue.run('saveTodos', { scope, todos, at })),

    addNote: async (note) => void (await queue.run('addNote', note)),
    searchNotes: async (owner, query, limit) => reading(() => notes.search(owner, query, limit)),

    removeEndedRuns: async (request) => queue.run('removeEndedRuns', request),
    expireRuns: async (endedBefore, limit) => queue.run('expireRuns', { endedBefore, limit }),

    async check() {
      // SQLite goes on writing into a file that was deleted; nobody would find that again.
      if (!existsSync(file)) {
        throw new AppError('store_unavailable', 'The database file is gone. Put it back, then start the server again.')
      }
      await queue.run('check', null)
    },

    close() {
      closing ??= queue.close().finally(() => {
        db.close()
        unlock()
      })
      return closing
    },
  }

  function acceptCommand({ events, ...input }: AcceptInput) {
    const place = placeOf(input.run.id, 0, events)
    const attempt = events.at(-1)?.attempt ?? 1
    const journalPart = place === undefined ? null : { id: place.id, lastSeq: place.lastSeq, body: bodyOf(events) }
    return { place, command: { ...input, attempt, journal: journalPart } }
  }

  function placeOf(runId: string, afterSeq: number, events: RunEvent[]): Place | undefined {
    if (events.length === 0) return undefined
    for (const [index, event] of events.entries()) {
      if (event.seq === afterSeq + 1 + index) continue
      throw new AppError('event_invalid', `The events are not numbered from ${afterSeq + 1} on.`, {
        details: { runId, afterSeq, found: event.seq },
      })
    }
    return { runId, id: queue.tailId(), firstSeq: afterSeq + 1, lastSeq: afterSeq + events.length }
  }
}

function bodyOf(events: RunEvent[]): string {
  // Not joined from a list: a long event would be copied while all its pieces are still held.
  let body = ''
  for (const event of events) body += body === '' ? encodeEvent(event) : `\n${encodeEvent(event)}`
  return body
}

function changesNoRow(write: RunWrite): boolean {
  return (
    write.run === undefined &&
    write.messages === undefined &&
    write.messageStates === undefined &&
    write.newInteractions === undefined &&
    write.interactionUpdates === undefined &&
    write.touchConversationAt === undefined &&
    write.dropBlobs === undefined
  )
}
