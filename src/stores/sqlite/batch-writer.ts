// Executes batches: one batch is one transaction. A command that is refused leaves
// nothing and spoils no other; an error of the disk rolls back the whole batch, and
// with it everything that is remembered about it. Knows nothing of threads.

import type { DatabaseSync } from 'node:sqlite'
import { acceptWriter } from './accept-queries.ts'
import {
  type Batch,
  type BatchReply,
  type CommandName,
  type Commands,
  deltaMark,
  type Handlers,
  toFailure,
  unpackCommand,
} from './commands.ts'
import { comparisonWriter } from './comparison-queries.ts'
import { conversationWriter } from './conversation-queries.ts'
import { feedbackWriter } from './feedback-queries.ts'
import { interactionWriter } from './interaction-queries.ts'
import { journalWriter, recoverJournal } from './journal-queries.ts'
import { messageWriter } from './message-queries.ts'
import { noteWriter } from './note-queries.ts'
import { workspaceWriter } from './workspace-queries.ts'
import { RunCache } from './run-cache.ts'
import { givesUp, runWriter } from './run-queries.ts'
import { spoilsOnlyItsCommand, toStoreError } from './sqlite-errors.ts'

export type BatchWriter = ReturnType<typeof batchWriter>

/** The tables are there, and nobody else writes to them. */
export function batchWriter(db: DatabaseSync) {
  const file = db.location() ?? ''
  let synced: boolean | undefined
  setSynced(true)
  // The lock says that no other process lives, so whoever held a lease is gone.
  inTransaction(() => {
    recoverJournal(db)
    db.exec('UPDATE runs SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL')
  })

  const cache = new RunCache()
  const folded: [runId: string, lastSeq: number][] = []
  const journal = journalWriter(db, cache, folded)
  const runs = runWriter(db, cache, journal)
  const conversations = conversationWriter(db)
  const messages = messageWriter(db)
  const interactions = interactionWriter(db)
  const notes = noteWriter(db)
  const workspace = workspaceWriter(db)
  const feedback = feedbackWriter(db)
  const comparisons = comparisonWriter(db)
  const { accept, startHeld } = acceptWriter(db, cache, { runs, conversations, messages, journal })
  const writeCheck = db.prepare("UPDATE store_state SET value = 1 - value WHERE name = 'write_check'")
  const savepoint = db.prepare('SAVEPOINT command')
  const keep = db.prepare('RELEASE command')
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')

  const handlers: Handlers = {
    accept,
    acceptAll({ inputs, beside }) {
      const results = inputs.map(accept)
      // A repeated request finds what came with its runs the first time.
      if (beside.comparison !== undefined && results.every((result) => result.outcome === 'accepted')) {
        comparisons.insert(beside.comparison)
      }
      return results
    },
    startHeld,
    append,
    claim: (request) => runs.claim(request),
    renewLeases: (request) => runs.renewLeases(request),
    requestCancel: (input) => runs.requestCancel(input),
    decide({ id, decision }) {
      const decided = interactions.decide(id, decision)
      const row = interactions.reader.read(id)
      if (row === undefined) return null
      if (decided) runs.wake(row.runId)
      return { decided, row }
    },
    createConversation: (row) => nothing(conversations.create(row)),
    renameConversation: ({ id, title, at }) => conversations.rename(id, title, at),
    deleteConversation: ({ id }) => conversations.remove(id, (runId) => runs.remove(runId)),
    setMessageStates: (states) => nothing(setStates(states)),
    react: (row) => feedback.react(row),
    addComment: (row) => feedback.comment(row),
    createComparison({ row, messageStates }) {
      comparisons.removePair(row)
      const existing = comparisons.onSameAnswers(row)
      if (existing !== undefined) return existing
      comparisons.insert(row)
      setStates(messageStates)
      return row
    },
    settleComparison(outcome) {
      const settled = comparisons.settle(outcome)
      if (settled) setStates(outcome.messageStates)
      return settled
    },
    voteComparison({ id, vote }) {
      const result = comparisons.vote(id, vote)
      if (result?.voted === true) setStates(vote.messageStates)
      return result
    },
    putBlob: (input) => nothing(runs.putBlob(input)),
    saveFileVersion: (row) => nothing(workspace.saveFile(row)),
    saveTodos: (list) => nothing(workspace.saveTodos(list)),
    addNote: (note) => nothing(notes.add(note)),
    expireRuns: (input) => runs.expire(input),
    removeEndedRuns: (input) => runs.removeEnded(input),
    check: () => nothing(writeCheck.run()),
  }

  function setStates(states: Commands['setMessageStates']['takes']): void {
    for (const { id, state } of states) messages.setState(id, state)
  }

  function append(write: Commands['append']['takes']): null {
    const { runId } = write
    const entry = runs.fenced(runId, write.epoch, write.afterSeq)
    if (write.journal !== null) journal.insert(runId, entry, write.journal, givesUp(write.run) ? 'fold' : 'tail')
    if (write.messages !== undefined && write.messages.length > 0) {
      const turn = runs.turnOf(runId)
      for (const message of write.messages) messages.insert(message, turn)
    }
    for (const { id, state } of write.messageStates ?? []) messages.setState(id, state)
    for (const row of write.newInteractions ?? []) interactions.insert(row)
    for (const change of write.interactionUpdates ?? []) interactions.update(change)
    if (write.touchConversationAt !== undefined) {
      const conversationId = runs.conversationOf(runId)
      if (conversationId !== null) conversations.touch(conversationId, write.touchConversationAt)
    }
    if (write.dropBlobs !== undefined) runs.dropBlobs(runId, write.dropBlobs)
    if (write.run !== undefined) runs.patch(runId, entry, write.run)
    return null
  }

  /** Throws when the whole batch was rolled back. */
  function execute({ durable, values }: Batch): BatchReply {
    const reply: BatchReply = { type: 'done', failures: [], results: [], folded: [] }
    setSynced(durable)
    begin.run()
    try {
      for (let at = 0, index = 0; at < values.length; index += 1) {
        const name = values[at] as string
        try {
          if (name === deltaMark) {
            const start = at
            at += 7
            const runId = values[start + 1] as string
            const entry = runs.fenced(runId, values[start + 2] as number, values[start + 3] as number)
            const part = {
              id: values[start + 4] as number,
              lastSeq: values[start + 5] as number,
              body: values[start + 6] as string,
            }
            journal.insert(runId, entry, part, 'tail')
          } else {
            const json = values[at + 1] as string
            const end = at + 3 + (values[at + 2] as number)
            const texts = values.slice(at + 3, end) as string[]
            at = end
            const result = isolated(name as CommandName, json, texts)
            if (result !== null) reply.results.push([index, result])
          }
        } catch (error) {
          if (!db.isTransaction || !spoilsOnlyItsCommand(error)) throw error
          reply.failures.push([index, toFailure(toStoreError(error, file))])
        }
      }
      journal.sweep()
      commit.run()
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      cache.rollbackTo(0)
      journal.rolledBack()
      folded.length = 0
      throw error
    }
    cache.commit()
    reply.folded = folded.splice(0)
    return reply
  }

  /** One command between savepoints: it happens as a whole or not at all. */
  function isolated(name: CommandName, json: string, texts: string[]): unknown {
    const input = unpackCommand(json, texts)
    const mark = cache.mark()
    const foldedMark = folded.length
    savepoint.run()
    try {
      const result = handlers[name](input as never)
      keep.run()
      return result
    } catch (error) {
      if (db.isTransaction) {
        db.exec('ROLLBACK TO command')
        keep.run()
      }
      cache.rollbackTo(mark)
      folded.length = foldedMark
      throw error
    }
  }

  /** SQLite refuses to change this inside a transaction; it costs as much as a small insert, so only when it changes. */
  function setSynced(wanted: boolean): void {
    if (synced === wanted) return
    db.exec(`PRAGMA synchronous = ${wanted ? 'FULL' : 'NORMAL'}`)
    synced = wanted
  }

  function inTransaction(work: () => void): void {
    db.exec('BEGIN IMMEDIATE')
    try {
      work()
      db.exec('COMMIT')
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  return {
    execute,
    close(): void {
      setSynced(true)
      inTransaction(() => journal.foldAll())
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    },
  }
}

function nothing(_result: unknown): null {
  return null
}
