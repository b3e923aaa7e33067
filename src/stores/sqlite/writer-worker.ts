// The writer thread. It owns the only connection that writes, so that a slow disk never
// blocks the main thread. It must answer every batch with exactly one message. After a close it can
// open another file.

import { statSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import { letMainThreadGoFirst } from '../../kit/thread-priority.ts'
import { type BatchWriter, batchWriter, logState } from './batch-writer.ts'
import { readLog } from './command-log.ts'
import {
  type BatchReply,
  type CommandBatch,
  type Failure,
  toFailure,
  type WriterMessage,
  type WriterRequest,
} from './commands.ts'
import { openWriter } from './connection.ts'
import { refuseUnfinished } from './copy-end.ts'
import { migrate } from './migrate.ts'
import { toStoreError } from './sqlite-errors.ts'

const port = parentPort
if (port === null) throw new Error('This file is started by writer-threads.ts as a worker thread.')

letMainThreadGoFirst()

const send = (message: WriterMessage): void => port.postMessage(message)

let execute: ((request: CommandBatch | 'close') => void) | undefined

port.on('message', (request: WriterRequest) => {
  if (typeof request === 'object' && 'open' in request) execute = open(request.open)
  else execute?.(request)
})

/** Undefined if the file cannot be opened. */
function open(file: string): typeof execute {
  const failure = (error: unknown) => toFailure(toStoreError(error, file))
  try {
    const db = openWriter(file)
    migrate(db)
    refuseUnfinished(db)
    const writer = batchWriter(db, readLog(file, logState(db)))
    if (writer.refused > 0) send({ type: 'trouble', failure: toFailure(skipped(writer.refused)) })
    const log = `${file}-wal`
    const opened = { file: identityOf(file), log: identityOf(log) }
    send({ type: 'ready', log: writer.log })
    return (request) => {
      if (request === 'close') {
        execute = undefined
        send({ type: 'closed', isSpent: !closed(writer, failure) })
        return
      }
      try {
        // SQLite keeps writing to a file that was deleted or replaced, without an error, and those writes would be lost.
        if (identityOf(file) !== opened.file) throw fileGone()
        if (identityOf(log) !== opened.log) throw logGone()
        send(writer.execute(request))
      } catch (error) {
        send({ type: 'failed', failure: failure(error), ...defined({ applied: appliedAlone(writer, request) }) })
      }
    }
  } catch (error) {
    send({ type: 'refused', failure: failure(error) })
    return undefined
  }
}

function closed(writer: BatchWriter, failure: (error: unknown) => Failure): boolean {
  try {
    writer.close()
    return true
  } catch (error) {
    // No data is lost: acknowledged writes are on disk, and recovery at the next start folds the tail.
    send({ type: 'trouble', failure: failure(error) })
    return false
  }
}

/** Tries to execute what was acknowledged before, without the batch that failed. Undefined if there is nothing, or if that fails too. */
function appliedAlone(writer: BatchWriter, { values, logged }: CommandBatch): BatchReply | undefined {
  if (logged === undefined || values.length === 0) return undefined
  try {
    return writer.execute({ durable: true, values: [], logged })
  } catch {
    return undefined
  }
}

function skipped(count: number): AppError {
  return new AppError(
    'store_damaged',
    `${count} commands of the log beside the database were refused by it, and were skipped.`,
  )
}

/** Undefined if there is no such file. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.dev}:${found.ino}`
}

function fileGone(): AppError {
  return new AppError('store_unavailable', 'The database file is gone. Put it back, then start the server again.')
}

/** The thread still has the deleted log open, and closing the database writes it into the file. */
function logGone(): AppError {
  return new AppError(
    'store_unavailable',
    'The write-ahead log beside the database file is gone. Stop the server with SIGTERM, which saves what was in it, then start it again.',
  )
}
