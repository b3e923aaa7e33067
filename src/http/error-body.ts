// The plain shape of an error: `code` for programs, `message` for people.

import type { AppError } from '../errors/app-error.ts'

export type Body = Record<string, unknown>

export function plainBody(error: AppError): Body {
  return {
    code: error.code,
    message: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
  }
}
