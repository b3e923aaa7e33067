// Translates errors of PostgreSQL: whether the transaction may be repeated, and which AppError
// the caller gets. The codes are those of https://www.postgresql.org/docs/current/errcodes-appendix.html

import { AppError } from '../../errors/app-error.ts'

const deadlock = '40P01'
const serializationFailure = '40001'
/** The wait for a lock took longer than `lock_timeout`. */
const lockNotAvailable = '55P03'
const uniqueViolation = '23505'
const constraintClass = '23'
const diskFull = '53100'
const dataCorrupted = 'XX001'
const indexCorrupted = 'XX002'

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/**
 * A unique key that another transaction took first counts too: the next attempt finds that row and answers as if it had
 * always been there.
 */
export function isRetryable(error: unknown): boolean {
  const code = codeOf(error)
  return code === deadlock || code === serializationFailure || code === lockNotAvailable || code === uniqueViolation
}

/** Turns any database error into `store_unavailable` or `store_damaged`, with a message that says what to do. */
export function toPostgresError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  if (code === dataCorrupted || code === indexCorrupted) {
    return new AppError(
      'store_damaged',
      'PostgreSQL reports damaged data. Look at its log, then restore the database from a backup.',
      { retryable: false, cause: error },
    )
  }
  const sentence =
    code === diskFull
      ? 'The disk of the database server is full. Free some space; a running server goes on by itself.'
      : code?.startsWith(constraintClass) === true
        ? 'The database refused a row that contradicts what is stored. Read again before you retry.'
        : 'The database could not be reached or did not answer in time. Check that PostgreSQL runs, then retry.'
  return new AppError('store_unavailable', sentence, { cause: error })
}
