// One server per data file. The lock is an exclusive transaction on a small file
// beside the database: the operating system drops it with the process, however
// that dies, so there is no stale lock to clean up and no process id to compare.

import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import { isBusy } from './sqlite-errors.ts'

export type ProcessLock = { release(): void }

/** Throws `config_invalid` when another server, or another store in this process, still uses the file after `waitMs`. */
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
