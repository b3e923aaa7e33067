// The HTTP status that belongs to an error: before a stream it is the status of the
// reply, and wires that speak of a status in mid-stream say the same number.

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

/** Codes for which HTTP has a word of its own. */
const statusOfCode: Partial<Record<ErrorCode, number>> = {
  unsupported_media_type: 415,
  headers_too_large: 431,
  client_timed_out: 408,
  request_timeout: 408,
}

/** Not in HTTP's own list, and widely understood: the client closed the request. */
export const cancelledStatus = 499

/** A code that this version does not know comes from an older or newer journal: 500. */
export function statusOfErrorCode(code: string): number {
  if (!Object.hasOwn(errorCodes, code)) return statusOfKind.bug
  const known = code as ErrorCode
  return statusOfCode[known] ?? statusOfKind[errorCodes[known]]
}
