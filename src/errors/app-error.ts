// The error class of the whole server. `code` is for programs, `message` is a full
// sentence that tells a person what to do, `details` are safe to show to clients, and
// `cause` is only for the log.

import { type ErrorCode, type ErrorKind, errorCodes } from './codes.ts'

export type ErrorExtras = {
  details?: Record<string, unknown>
  retryable?: boolean
  cause?: unknown
}

/** How an error is written into the journal and onto wires. */
export type ErrorValue = {
  code: string
  message: string
  retryable?: boolean | undefined
  details?: Record<string, unknown> | undefined
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly kind: ErrorKind
  readonly retryable: boolean
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'AppError'
    this.code = code
    this.kind = errorCodes[code]
    this.retryable = extras.retryable ?? (this.kind === 'unavailable' || this.kind === 'limited')
    this.details = extras.details
  }

  toValue(): ErrorValue {
    return {
      code: this.code,
      message: this.message,
      ...(this.retryable ? { retryable: true } : {}),
      ...(this.details === undefined ? {} : { details: this.details }),
    }
  }
}

/** Turns any thrown value into an AppError. Call it once, at the edge. Unknown errors get a fixed message, and the cause goes only to the log. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  return new AppError('internal_error', 'Something went wrong on the server. The log has the details.', {
    cause: thrown,
  })
}
