// Makes sure that only one server uses a data file. The lock is an exclusive transaction
// on a small file beside the database. The operating system releases it when the process
// ends, even after a crash, so there are no stale locks and no process ids to compare.

import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { isBusy } from './sqlite-errors.ts'

export type ProcessLock = { release(): void }

/** Throws `config_invalid` if another server, or another store in this process, still uses the file after `waitMs`. */
export function lockFile(file: string, waitMs: number): ProcessLock {
  const db = new DatabaseSync(`${file}.lock`, { timeout: waitMs })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw error
    throw new AppError(
      'config_invalid',
      `Another server uses the data folder ${dirname(file)}. Stop it, or set POLYLOG_DATA to another folder.`,
      { details: { file, locked: true }, cause: error },
    )
  }
  return { release: () => db.close() }
}
