// The commands for runs and their journals, executed in the writer thread. An append
// writes its events together with the rows that are folds of them, including messages
// and interactions.

import type { DatabaseSync } from 'node:sqlite'
import { acceptHandlers } from './accept-command.ts'
import { type Handlers, nothingStored, type RunCommands } from './commands.ts'
import type { ComparisonWriter } from './comparison-store.ts'
import type { ConversationWriter } from './conversation-store.ts'
import type { FileWriter } from './file-store.ts'
import type { InteractionWriter } from './interaction-store.ts'
import type { JournalWriter } from './journal-writer.ts'
import type { MessageWriter } from './message-store.ts'
import type { RunCache } from './run-cache.ts'
import type { SnapshotWriter } from './snapshot-store.ts'
import type { RunTable } from './run-table.ts'
import type { UsageWriter } from './usage-store.ts'

type TableWriters = {
  runs: RunTable
  journal: JournalWriter
  conversations: ConversationWriter
  messages: MessageWriter
  files: FileWriter
  interactions: InteractionWriter
  comparisons: ComparisonWriter
  snapshots: SnapshotWriter
  usage: UsageWriter
}

/** `isAcknowledged`: whether the command that is being executed was acknowledged from the log. */
export function runHandlers(
  db: DatabaseSync,
  cache: RunCache,
  writers: TableWriters,
  isAcknowledged: () => boolean,
): Handlers<RunCommands> {
  const { runs, journal, conversations, messages, files, interactions, comparisons, snapshots, usage } = writers
  const { accept, startHeld, bindIdempotencyKey } = acceptHandlers(db, cache, writers, isAcknowledged)

  return {
    accept,
    acceptAll({ inputs, extraRows }) {
      const results = inputs.map(accept)
      // A repeated request finds the existing runs, and the comparison that was created with them.
      if (extraRows.comparison !== undefined && results.every((result) => result.outcome === 'accepted')) {
        comparisons.insert(extraRows.comparison)
      }
      return results
    },
    startHeld,
    bindIdempotencyKey,
    changeQueued({ runId, afterSeq, journal: part, message, cancel, at }) {
      const found = runs.read(runId)
      if (found === undefined || found.lastSeq !== afterSeq || !runs.isQueued(runId)) return nothingStored
      if (part !== null) {
        const entry = runs.checkFence(runId, found.epoch, afterSeq)
        journal.insert(runId, entry, part)
        journal.fold(runId, entry)
      }
      if (message?.content !== undefined) messages.setContent(message.id, message.content)
      if (message?.state !== undefined) messages.setStates([{ id: message.id, state: message.state }])
      if (found.conversationId !== null) conversations.touch(found.conversationId, at)
      // Runs that are not claimed are not cached.
      cache.remove(runId)
      return (cancel === undefined ? runs.read(runId) : runs.requestCancel({ runId, cancel })) ?? nothingStored
    },
    append,
    importRun({ input, ending }) {
      const { run } = accept(input)
      append({ runId: run.id, epoch: run.epoch, afterSeq: run.lastSeq, journal: null, ...ending })
      return null
    },
    claim: (request) => runs.claim(request),
    unplaceableRuns: (request) => runs.unplaceable(request),
    claimUnplaceable: (request) => runs.claimUnplaceable(request),
    renewLeases: (request) => runs.renewLeases(request),
    requestCancel: (input) => runs.requestCancel(input),
    putBlob(input) {
      runs.putBlob(input)
      return null
    },
    expireRuns: (input) => runs.expire(input),
    removeRun({ runId }) {
      if (runs.read(runId)?.endedAt == null) return false
      runs.remove(runId)
      return true
    },
    removeEndedRuns: (input) => runs.removeEnded(input),
  }

  function append(write: RunCommands['append']['takes']): null {
    const { runId } = write
    const entry = runs.checkFence(runId, write.epoch, write.afterSeq)
    if (write.journal !== null) journal.insert(runId, entry, write.journal)
    for (const message of write.messages ?? []) messages.insert(message, entry.turn)
    messages.setStates(write.messageStates ?? [])
    files.refer({ runId }, write.files ?? [])
    for (const row of write.newInteractions ?? []) interactions.insert(row)
    for (const change of write.interactionUpdates ?? []) interactions.update(change)
    if (write.touchConversationAt !== undefined && entry.conversationId !== null)
      conversations.touch(entry.conversationId, write.touchConversationAt)
    for (const step of write.usage ?? []) usage.add(step)
    if (write.snapshot !== undefined) snapshots.insert(write.snapshot)
    if (write.describeConversation !== undefined) conversations.describe(write.describeConversation)
    if (write.dropBlobs !== undefined) runs.dropBlobs(runId, write.dropBlobs)
    if (write.run !== undefined) runs.patch(runId, entry, write.run)
    return null
  }
}
