// How a one-shot request ends: the result of a snapshot as the answer to a request, or the
// error of a run that has not succeeded. Pure.

import { AppError, type ErrorValue } from '../errors/app-error.ts'
import { type ErrorCode, errorCodes } from '../errors/codes.ts'
import { shownConversationId } from '../kit/conversation-id.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { SnapshotRow } from '../stores/snapshot-store.ts'
import { dataOf } from './one-shot-result.ts'
import type { JsonObject } from './sources/source.ts'

export type OneShotOutcome = {
  runId: string
  agentId: string
  operation: string | null
  cached: boolean
  snapshotId: string | null
  /** Epoch milliseconds. */
  generatedAt: number
  data: JsonObject
}

export function outcomeOf(row: SnapshotRow, cached: boolean): OneShotOutcome {
  const scopeName = scopeNameOf(row.scopeType, row.scopeId)
  const facts = { ...row, scopeName, generatedAt: row.createdAt, cached }
  return {
    runId: row.runId,
    agentId: row.agentId,
    operation: row.operation,
    cached,
    snapshotId: row.id,
    generatedAt: row.createdAt,
    data: dataOf((row.output ?? {}) as JsonObject, facts),
  }
}

/** The id of the scope as clients know it. */
export function scopeNameOf(type: SnapshotRow['scopeType'], id: string | null): string | null {
  return type === 'conversation' && id !== null ? shownConversationId(id) : id
}

/** The provider failed, and the request may be repeated, unless repeating it cannot help. */
const notRetryable: ReadonlySet<string> = new Set(['model_auth_failed', 'model_content_filtered'])

/** The error of a run that has not succeeded. */
export function runEndError({ id, status, error }: RunRow): AppError {
  if (status === 'canceled') {
    return new AppError('run_cancelled', 'The run was cancelled. Send the request again.', { details: { runId: id } })
  }
  if (status !== 'failed') {
    return new AppError(
      'shutting_down',
      `The server is going down; the run ${id} goes on later. Send the request again with the same Idempotency-Key.`,
      { details: { runId: id } },
    )
  }
  const failure: ErrorValue = error ?? { code: 'internal_error', message: 'The run failed.' }
  const details = { ...failure.details, runId: id }
  if (failure.code.startsWith('model_')) {
    return new AppError('ai_provider_error', failure.message, {
      details: { ...details, cause: failure.code },
      retryable: !notRetryable.has(failure.code),
    })
  }
  const code = Object.hasOwn(errorCodes, failure.code) ? (failure.code as ErrorCode) : 'internal_error'
  return new AppError(code, failure.message, { details })
}
