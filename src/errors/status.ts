// Maps error codes to HTTP statuses. Before a stream starts, this is the status of the
// reply; dialects that report a status inside a stream use the same number.

import { type ErrorCode, type ErrorKind, errorCodes } from './codes.ts'

const statusOfKind: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  limited: 429,
  upstream: 502,
  unavailable: 503,
  timeout: 504,
  bug: 500,
}

/** Codes that have a more specific HTTP status than their kind. */
const statusOfCode: Partial<Record<ErrorCode, number>> = {
  unsupported_media_type: 415,
  headers_too_large: 431,
  client_timed_out: 408,
  request_timeout: 408,
}

/** Client closed request: not in the HTTP standard, but widely used. */
export const cancelledStatus = 499

/** Unknown codes map to 500; they come from journals of older or newer versions. */
export function statusOfErrorCode(code: string): number {
  if (!Object.hasOwn(errorCodes, code)) return statusOfKind.bug
  const known = code as ErrorCode
  return statusOfCode[known] ?? statusOfKind[errorCodes[known]]
}
