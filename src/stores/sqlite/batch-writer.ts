// Executes batches of commands; one batch is one transaction. A refused command is
// rolled back alone and does not affect the others. A disk error rolls back the whole
// batch, and the in-memory run cache with it. This file does not depend on threads.

import type { DatabaseSync } from 'node:sqlite'
import { archiveHandlers } from './archive-store.ts'
import {
  type CommandBatch,
  type BatchReply,
  type CommandName,
  deltaMark,
  type Handlers,
  toFailure,
  unpackCommand,
} from './commands.ts'
import { comparisonWriter } from './comparison-store.ts'
import { contactRecordWriter } from './contact-record-store.ts'
import { contactWriter } from './contact-store.ts'
import { conversationWriter } from './conversation-store.ts'
import { feedbackHandlers } from './feedback-store.ts'
import { feedHandlers } from './feed-store.ts'
import { fileWriter } from './file-store.ts'
import { interactionWriter } from './interaction-store.ts'
import { journalWriter, recoverJournal } from './journal-writer.ts'
import { keyHandlers } from './key-store.ts'
import { messageWriter } from './message-store.ts'
import { nodeHandlers } from './node-store.ts'
import { noteHandlers } from './note-store.ts'
import { RunCache } from './run-cache.ts'
import { runHandlers } from './run-commands.ts'
import { runTable } from './run-table.ts'
import { snapshotWriter } from './snapshot-store.ts'
import { failsOnlyItsCommand, toStoreError } from './sqlite-errors.ts'
import { usageWriter } from './usage-store.ts'
import { workspaceHandlers } from './workspace-store.ts'

export type BatchWriter = ReturnType<typeof batchWriter>

/** Expects a migrated database that no other connection writes to. */
export function batchWriter(db: DatabaseSync) {
  const file = db.location() ?? ''
  let synced: boolean | undefined
  setSynced(true)
  // We hold the process lock, so every lease and every node in the file belongs to a dead process.
  inTransaction(() => {
    recoverJournal(db)
    db.exec('UPDATE runs SET lease_owner = NULL, lease_until = NULL, slot = 0 WHERE lease_owner IS NOT NULL')
    db.exec('DELETE FROM nodes')
  })

  const cache = new RunCache()
  const folded: [runId: string, lastSeq: number][] = []
  const journal = journalWriter(db, cache, folded)
  const runs = runTable(db, cache, journal)
  const conversations = conversationWriter(db, runs)
  const files = fileWriter(db)
  const messages = messageWriter(db, files)
  const interactions = interactionWriter(db, runs)
  const comparisons = comparisonWriter(db, messages)
  const snapshots = snapshotWriter(db)
  const contacts = contactWriter(db)
  const records = contactRecordWriter(db)
  const usage = usageWriter(db)
  const writeCheck = db.prepare("UPDATE store_state SET value = 1 - value WHERE name = 'write_check'")
  const savepoint = db.prepare('SAVEPOINT command')
  const keep = db.prepare('RELEASE command')
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')

  const handlers: Handlers = {
    ...runHandlers(db, cache, {
      runs,
      journal,
      conversations,
      messages,
      files,
      interactions,
      comparisons,
      snapshots,
      usage,
    }),
    ...conversations.handlers,
    ...messages.handlers,
    ...interactions.handlers,
    ...feedbackHandlers(db),
    ...comparisons.handlers,
    ...workspaceHandlers(db),
    ...noteHandlers(db),
    ...keyHandlers(db),
    ...nodeHandlers(db),
    ...files.handlers,
    ...snapshots.handlers,
    ...contacts.handlers,
    ...records.handlers,
    ...archiveHandlers(db, { contacts, records }),
    ...feedHandlers(db),
    check() {
      writeCheck.run()
      return null
    },
  }

  /** Throws if the whole batch was rolled back. */
  function execute({ durable, values }: CommandBatch): BatchReply {
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
            const entry = runs.checkFence(runId, values[start + 2] as number, values[start + 3] as number)
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
          if (!db.isTransaction || !failsOnlyItsCommand(error)) throw error
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

  /** Runs one command inside a savepoint, so that it is applied as a whole or not at all. */
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

  /** Call outside a transaction: SQLite refuses the change inside one. Skipped if nothing changes, because it costs as much as a small insert. */
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
