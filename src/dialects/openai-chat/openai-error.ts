// The error object of the OpenAI APIs. `code` is a code of this server; `type` is the group that
// OpenAI's own API would name.

import { type ErrorCode, errorCodes, type ErrorKind } from '../../errors/codes.ts'

export type OpenAiError = { message: string; type: string; param: string | null; code: string }

const typeOfKind: Record<ErrorKind, string> = {
  invalid: 'invalid_request_error',
  unauthenticated: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'invalid_request_error',
  conflict: 'invalid_request_error',
  too_large: 'invalid_request_error',
  limited: 'rate_limit_error',
  upstream: 'server_error',
  unavailable: 'server_error',
  timeout: 'server_error',
  bug: 'server_error',
}

/** Unknown codes come from journals of older or newer versions. */
export function openAiError(code: string, message: string, param: string | null = null): OpenAiError {
  const kind = Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : 'bug'
  return { message, type: typeOfKind[kind], param, code }
}
