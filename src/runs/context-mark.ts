// What a hidden row of a conversation says about the prompts of later runs: from which message on
// the model is given the history, and which summary stands for the part before it.

import type { JsonValue } from '../journal/event.ts'
import { defined } from '../kit/defined.ts'
import type { MessageRow } from '../stores/message-store.ts'

export type ContextMark = {
  /** The first message that the model is given. It is the message of a user, which no later change of an answer removes. */
  keptFrom: string
  /** The row that holds the summary. */
  summaryId: string | undefined
}

export function contextMark(keptFrom: string, summaryId: string | undefined): JsonValue {
  return defined({ keptFrom, summaryId })
}

/** Undefined if the row is not a mark. */
export function readContextMark({ role, metadata }: Pick<MessageRow, 'role' | 'metadata'>): ContextMark | undefined {
  const mark = metadata.context
  if (role !== 'system' || typeof mark !== 'object' || mark === null || Array.isArray(mark)) return undefined
  const { keptFrom, summaryId } = mark
  if (typeof keptFrom !== 'string') return undefined
  return { keptFrom, summaryId: typeof summaryId === 'string' ? summaryId : undefined }
}
