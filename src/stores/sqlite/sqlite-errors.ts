// Translates SQLite errors: whether an error fails one command or the whole batch, and
// which AppError the caller gets.

import { basename } from 'node:path'
import { AppError } from '../../errors/app-error.ts'

/** The primary result codes that we tell apart; https://sqlite.org/rescode.html */
const busy = 5
const locked = 6
const corrupt = 11
const full = 13
const tooBig = 18
const constraint = 19
const notADatabase = 26

function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  return code === busy || code === locked
}

/** True if the statement was wrong and not the disk: then only its command fails, and the transaction goes on. */
export function failsOnlyItsCommand(error: unknown): boolean {
  if (error instanceof AppError) return true
  const code = primaryCode(error)
  // An error without a code comes from binding a value: it is a bug in the caller, and nothing was written.
  return code === undefined || code === constraint || code === tooBig
}

/** Turns any database error into `store_unavailable` or `store_damaged`, with a message that says what to do. */
export function toStoreError(error: unknown, file: string): AppError {
  if (error instanceof AppError) return error
  const code = primaryCode(error)
  if (code === corrupt || code === notADatabase) {
    // Clients see this message too, so it does not name the folder.
    const name = basename(file)
    return new AppError(
      'store_damaged',
      `The database file ${name} in the data folder is damaged. Stop the server, then restore the file from a backup, or move it away together with the files beside it whose names begin with ${name} to start with an empty one.`,
      { retryable: false, cause: error },
    )
  }
  const sentence =
    code === full
      ? 'The disk that holds the database is full. Free some space; a running server goes on by itself.'
      : code === constraint
        ? 'The database refused a row that contradicts what is stored. Read again before you retry.'
        : 'The database could not be written. Check the disk of the data folder, then retry.'
  return new AppError('store_unavailable', sentence, { cause: error })
}
