// Executes batches of commands; one batch is one transaction. A refused command is
// rolled back alone and does not affect the others. A disk error rolls back the whole
// batch, and the in-memory run cache with it. This file does not depend on threads.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { archiveHandlers } from './archive-store.ts'
import {
  type CommandBatch,
  type BatchReply,
  type CommandName,
  deltaLength,
  deltaMark,
  type Handlers,
  type LogState,
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
import { type LogRecord, valuesOfRecords } from './log-record.ts'
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

/** Thrown to execute a batch again with savepoints. */
const commandFailed = new Error('A command of the batch failed.')

/** How many records of the log share a transaction at the start. Each transaction is synced. */
const replayedTogether = 500

export type BatchWriter = ReturnType<typeof batchWriter>

/**
 * Expects a migrated database that no other connection writes to. `log`: the records of the log that the database does not have;
 * they are executed first.
 */
export function batchWriter(db: DatabaseSync, log: readonly LogRecord[] = []) {
  let synced: boolean | undefined
  setSynced(true)
  inTransaction(() => recoverJournal(db))
  const refused = log.length === 0 ? 0 : replay(db, log)
  // We hold the process lock, so every lease and every node in the file belongs to a dead process.
  inTransaction(() => {
    recoverJournal(db)
    db.exec('UPDATE runs SET lease_owner = NULL, lease_until = NULL, slot = 0 WHERE lease_owner IS NOT NULL')
    db.exec('DELETE FROM nodes')
  })
  const executor = commandExecutor(db)

  /** Throws if the whole batch was rolled back. */
  function execute(batch: CommandBatch): BatchReply {
    setSynced(batch.durable || batch.logged !== undefined)
    return executor.execute(batch)
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
    /** How many commands of the log were refused. They were acknowledged, so there should be none. */
    refused,
    /** Which log belongs to the database, and how much of it the database has. */
    get log(): LogState {
      return logState(db)
    },
    close(): void {
      setSynced(true)
      inTransaction(() => executor.foldAll())
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    },
  }
}

export function logState(db: DatabaseSync): LogState {
  const value = (name: string) =>
    Number(db.prepare('SELECT value FROM store_state WHERE name = ?').get(name)?.['value'] ?? 0)
  return { lineage: value('log_lineage'), applied: value('log_applied') }
}

/** Executes the records of the log. Returns how many commands were refused. */
function replay(db: DatabaseSync, records: readonly LogRecord[]): number {
  // Has its own memory of the runs, because recovery changes their rows after it.
  const executor = commandExecutor(db)
  let refused = 0
  for (let at = 0; at < records.length; at += replayedTogether) {
    const together = records.slice(at, at + replayedTogether)
    const values = together.flatMap((record) => record.values)
    const { failures } = executor.execute({ durable: true, values }, together.at(-1)?.number)
    refused += failures.length
  }
  return refused
}

/** Executes commands. It keeps the state of the runs that it writes to, so it must be the only writer while it is used. */
function commandExecutor(db: DatabaseSync) {
  const file = db.location() ?? ''
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
  const setLogApplied = db.prepare("UPDATE store_state SET value = ? WHERE name = 'log_applied'")
  const logAppliedTo = db.prepare("SELECT value FROM store_state WHERE name = 'log_applied'")
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  /** The command that is being executed was acknowledged from the log. */
  let isAcknowledged = false

  const handlers: Handlers = {
    ...runHandlers(
      db,
      cache,
      {
        runs,
        journal,
        conversations,
        messages,
        files,
        interactions,
        comparisons,
        snapshots,
        usage,
      },
      () => isAcknowledged,
    ),
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

  /** Throws if the whole batch was rolled back. `replayed`: the number of the last log record in the batch, if it is from the log of a process that died. */
  function execute({ values, logged, needsLog = logged?.after }: CommandBatch, replayed?: number): BatchReply {
    if (needsLog !== undefined && logAppliedTo.get()?.['value'] !== needsLog) throw logGap()
    const isReplay = replayed !== undefined
    const batch = { records: logged?.records ?? [], values, isReplay, number: replayed ?? logged?.number }
    try {
      return transaction(batch, false)
    } catch (error) {
      if (error !== commandFailed) throw error
      return transaction(batch, true)
    }
  }

  /**
   * `isolates`: a failed command is rolled back alone. That costs a savepoint for each command, and SQLite then copies each page
   * before its first change. Commands rarely fail, so the batch is tried without savepoints first; if a command fails, everything is rolled
   * back and `commandFailed` is thrown.
   */
  function transaction({ records, values, isReplay, number }: NumberedBatch, isolates: boolean): BatchReply {
    const reply: BatchReply = { type: 'done', failures: [], results: [], folded: [] }
    begin.run()
    try {
      isAcknowledged = true
      for (const range of records) for (const list of valuesOfRecords(range)) executeAll(list, isolates, undefined)
      isAcknowledged = isReplay
      executeAll(values, isolates, reply)
      const merged = journal.writeTails()
      if (merged.length > 0) reply.merged = merged
      journal.sweep()
      if (number !== undefined) setLogApplied.run(number)
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

  /** `reply`: gets the results; undefined for commands that were acknowledged from the log, whose callers have theirs. */
  function executeAll(values: CommandBatch['values'], isolates: boolean, reply: BatchReply | undefined): void {
    for (let at = 0, index = 0; at < values.length; index += 1) {
      const name = values[at] as string
      const isDelta = name === deltaMark
      const start = at
      at += isDelta ? deltaLength : 3 + (values[start + 2] as number)
      try {
        if (isDelta) appendDelta(values, start)
        else {
          const input = unpackCommand(values[start + 1] as string, values.slice(start + 3, at) as string[])
          const result = isolates ? isolated(name as CommandName, input) : handlers[name as CommandName](input as never)
          if (result !== null) reply?.results.push([index, result])
        }
      } catch (error) {
        if (!db.isTransaction || !failsOnlyItsCommand(error)) throw error
        // A refused delta has changed nothing.
        if (!isolates && !isDelta) throw commandFailed
        if (reply === undefined) throw acknowledgedAndRefused(error)
        reply.failures.push([index, toFailure(toStoreError(error, file))])
      }
    }
  }

  function appendDelta(values: CommandBatch['values'], start: number): void {
    const runId = values[start + 1] as string
    const entry = runs.checkFence(runId, values[start + 2] as number, values[start + 3] as number)
    const id = values[start + 4] as number
    const lastSeq = values[start + 5] as number
    journal.insert(runId, entry, { id, lastSeq, body: values[start + 6] as string })
  }

  /** Runs one command inside a savepoint, so that it is applied as a whole or not at all. */
  function isolated(name: CommandName, input: unknown): unknown {
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

  return {
    execute,
    /** Moves all events into the journal table. Call inside a transaction. */
    foldAll: () => journal.foldAll(),
  }
}

type NumberedBatch = {
  /** Ranges of records of the log. Their commands were acknowledged, and are executed first. */
  records: readonly Uint8Array[]
  values: CommandBatch['values']
  /** All its commands were acknowledged by a process that died. */
  isReplay: boolean
  /** The database then has the log up to this number. */
  number: number | undefined
}

function logGap(): AppError {
  return new AppError('store_unavailable', 'An earlier batch could not be written to the database. Retry in a moment.')
}

/** The command is certain to succeed when it is acknowledged, so this is a bug or a damaged file. The log keeps the command. */
function acknowledgedAndRefused(cause: unknown): AppError {
  return new AppError(
    'store_damaged',
    'The database refused a command that was acknowledged. Restart the server; the log tells which one is skipped.',
    { retryable: false, cause },
  )
}
