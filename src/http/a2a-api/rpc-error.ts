// Errors as the JSON-RPC error objects of A2A. The codes of the server stay the same; `data` carries
// them, and the number is the one that A2A has for the case.

import type { RpcId } from '../../dialects/a2a/a2a.ts'
import type { AppError } from '../../errors/app-error.ts'
import type { ErrorCode, ErrorKind } from '../../errors/codes.ts'
import type { ErrorBody } from '../error-body.ts'

/** `reason`: the name of the case in A2A 1.0; JSON-RPC's own errors have none. */
type RpcCase = { readonly code: number; readonly reason?: string }

const invalidParams: RpcCase = { code: -32602, reason: 'INVALID_PARAMS' }
const contentTypeNotSupported: RpcCase = { code: -32005, reason: 'CONTENT_TYPE_NOT_SUPPORTED' }
const unsupportedOperation: RpcCase = { code: -32004, reason: 'UNSUPPORTED_OPERATION' }
/** A2A has no number for these; -32000 is the first of those that JSON-RPC leaves to servers. */
const serverError: RpcCase = { code: -32000 }

const caseOfCode: Partial<Record<ErrorCode, RpcCase>> = {
  invalid_json: { code: -32700 },
  rpc_request_invalid: { code: -32600 },
  rpc_method_unknown: { code: -32601 },
  run_not_found: { code: -32001, reason: 'TASK_NOT_FOUND' },
  task_not_cancelable: { code: -32002, reason: 'TASK_NOT_CANCELABLE' },
  push_notifications_unsupported: { code: -32003, reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' },
  task_not_waiting: unsupportedOperation,
  task_over: unsupportedOperation,
  tool_confirmation_resolved: unsupportedOperation,
  tool_confirmation_expired: unsupportedOperation,
  unsupported_content: contentTypeNotSupported,
  unsupported_media_type: contentTypeNotSupported,
  output_modes_unsupported: contentTypeNotSupported,
  file_type_unsupported: contentTypeNotSupported,
  file_url_refused: contentTypeNotSupported,
  model_cannot_read: contentTypeNotSupported,
  protocol_version_unsupported: { code: -32009, reason: 'VERSION_NOT_SUPPORTED' },
  idempotency_key_reused: invalidParams,
}

const caseOfKind: Partial<Record<ErrorKind, RpcCase>> = {
  invalid: invalidParams,
  not_found: invalidParams,
  too_large: invalidParams,
  bug: { code: -32603 },
}

const errorInfoType = 'type.googleapis.com/google.rpc.ErrorInfo'
const errorDomain = 'a2a-protocol.org'

/** `data` is the list of details of 1.0, which older clients pass on unread. */
export function rpcErrorBody(error: AppError, id: RpcId = null): ErrorBody {
  const { code, reason } = caseOfCode[error.code] ?? caseOfKind[error.kind] ?? serverError
  const info = {
    '@type': errorInfoType,
    reason: reason ?? error.code.toUpperCase(),
    domain: errorDomain,
    metadata: { code: error.code },
  }
  const details = error.details === undefined ? [] : [{ '@type': 'polylog/details', ...error.details }]
  return { jsonrpc: '2.0', id, error: { code, message: error.message, data: [info, ...details] } }
}

/** These keep their HTTP status, because proxies and HTTP clients act on it. All others are results of JSON-RPC, with 200. */
const httpKinds: ReadonlySet<ErrorKind> = new Set(['unauthenticated', 'limited', 'unavailable', 'bug'])

export function keepsHttpStatus({ kind }: AppError): boolean {
  return httpKinds.has(kind)
}
