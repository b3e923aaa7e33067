// The default JSON body of an error: `code` for programs, `message` for people.

import type { AppError } from '../errors/app-error.ts'

export type ErrorBody = Record<string, unknown>

export function plainBody(error: AppError): ErrorBody {
  return {
    code: error.code,
    message: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
    // Other kinds of error have Retry-After if a retry can help.
    ...(error.kind === 'upstream' && error.retryable ? { retryable: true } : {}),
  }
}
