// For programs that read a database file without being its server: what a server has acknowledged may
// only be in its log.

import { AppError } from '../../errors/app-error.ts'
import { batchWriter, logState } from './batch-writer.ts'
import { hasLog, readLog, removeLog } from './command-log.ts'
import { openReader, openWriter } from './connection.ts'
import { pendingMigrations } from './migrate.ts'
import { lockFile, type ProcessLock } from './process-lock.ts'

/** A running server applies its log every half second, unless it is very busy or cannot write. */
const serverMsMax = 10_000
const pollMs = 20

/** Makes sure that the file has what was acknowledged until now. Applies the log of a server that was killed. Blocks its thread. */
export function applyLeftLog(file: string): void {
  if (!hasLog(file)) return
  const lock = lockUnlessServed(file)
  if (lock === undefined) {
    waitForServer(file)
    return
  }
  try {
    const db = openWriter(file)
    try {
      const records = pendingMigrations(db).length > 0 ? [] : readLog(file, logState(db))
      if (records.length === 0) return
      batchWriter(db, records).close()
      removeLog(file)
    } finally {
      if (db.isOpen) db.close()
    }
  } finally {
    lock.release()
  }
}

/** Waits until the server has applied what its log holds now. */
function waitForServer(file: string): void {
  const db = openReader(file)
  try {
    const last = readLog(file, logState(db)).at(-1)?.number ?? 0
    const until = performance.now() + serverMsMax
    while (logState(db).applied < last && performance.now() < until)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pollMs)
  } finally {
    db.close()
  }
}

function lockUnlessServed(file: string): ProcessLock | undefined {
  try {
    return lockFile(file, 0)
  } catch (error) {
    if (error instanceof AppError && error.details?.['locked'] === true) return undefined
    throw error
  }
}
