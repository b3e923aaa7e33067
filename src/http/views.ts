// Rows → the JSON of the /v1 family. Every time has two fields: ISO text, and epoch
// milliseconds under the same name with the suffix `Ms`.

import { z } from 'zod'
import { isoTime } from '../kit/clock.ts'
import { shownConversationId, shownConversationIdOrNull } from '../kit/conversation-id.ts'
import type { ConversationRow } from '../stores/conversation-store.ts'
import type { FeedbackSummary } from '../stores/feedback-store.ts'
import type { InteractionRow } from '../stores/interaction-store.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { RunRow } from '../stores/run-store.ts'
import { defined } from '../kit/defined.ts'
import { part } from '../journal/part.ts'
import { usageView } from './usage-view.ts'

export const time = z.string().describe('ISO 8601, UTC')
export const ms = z.number().describe('epoch milliseconds')

export function times<Name extends string>(
  fields: Record<Name, number | null>,
): Record<string, string | number | null> {
  return Object.fromEntries(
    Object.entries<number | null>(fields).flatMap(([name, at]) => [
      [name, at === null ? null : isoTime(at)],
      [`${name}Ms`, at],
    ]),
  )
}

/** The answer to a request that stops all runs of a conversation. */
export const stoppedView = z.object({
  stopped: z.array(z.string()).describe('The ids of the runs; they have ended.'),
  stopping: z
    .array(z.string())
    .describe(
      'Runs that need more than 10 seconds to end. Their cancel requests are stored; no new model or tool call starts.',
    ),
})

/** The header with the conversation id. It is percent-encoded, because an id may have characters that headers forbid. */
export function conversationHeader(conversationId: string | null): Record<string, string> {
  return conversationId === null ? {} : { 'x-conversation-id': encodeURIComponent(shownConversationId(conversationId)) }
}

export const conversationView = z
  .object({
    id: z.string(),
    title: z.string().nullable(),
    summary: z.string().nullable(),
    contactId: z.string().nullable().describe('The contact that the conversation is with or about.'),
    isArchived: z.boolean().describe('True if an archive of the conversation was applied.'),
    createdAt: time,
    createdAtMs: ms,
    updatedAt: time,
    updatedAtMs: ms,
    usage: usageView
      .nullable()
      .optional()
      .describe('Over all steps; null if none has ended. Only for one conversation.'),
    activeRun: z
      .object({ runId: z.string(), status: z.string(), cursor: z.string() })
      .nullable()
      .optional()
      .describe(
        'The run that has not ended yet, and the cursor of its last event: attach with GET /v1/agent/runs/{runId}/stream?after={cursor}.',
      ),
  })
  .meta({ id: 'Conversation' })

export function toConversation(row: ConversationRow): z.infer<typeof conversationView> {
  return {
    id: shownConversationId(row.id),
    title: row.title,
    summary: row.summary,
    contactId: row.contactId,
    isArchived: row.archivedAt !== null,
    ...times({ createdAt: row.createdAt, updatedAt: row.updatedAt }),
  } as z.infer<typeof conversationView>
}

export const messageView = z
  .object({
    id: z.string(),
    conversationId: z.string().optional(),
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    content: z.string().describe('The text; a file is a short name in brackets.'),
    parts: z
      .array(part)
      .optional()
      .describe('Present if the message has files. Their bytes are at GET /v1/files/{fileId}.'),
    createdAt: time,
    createdAtMs: ms,
    toolCallId: z.string().nullable(),
    references: z.array(z.unknown()),
    metadata: z.record(z.string(), z.unknown()),
    feedback: z
      .object({ reaction: z.enum(['like', 'dislike']).nullable(), comments: z.number() })
      .optional()
      .describe('Your feedback on an answer; absent if you gave none.'),
  })
  .meta({ id: 'Message' })

/**
 * `undecided` are the runs that wait for a vote (`ComparisonService.undecidedRuns`); their reasoning is hidden. `feedback` is
 * that of the caller, by message.
 */
export function toMessages(
  rows: readonly MessageRow[],
  undecided: ReadonlySet<string>,
  feedback: ReadonlyMap<string, FeedbackSummary>,
): z.infer<typeof messageView>[] {
  return rows.map((row) => {
    const { reasoning: _hidden, ...metadata } = row.metadata
    const isUndecided = row.runId !== null && undecided.has(row.runId)
    return {
      ...toMessage(isUndecided ? { ...row, metadata } : row),
      ...defined({ feedback: feedback.get(row.id) }),
    }
  })
}

function toMessage(row: MessageRow): z.infer<typeof messageView> {
  return {
    id: row.id,
    conversationId: shownConversationId(row.conversationId),
    role: row.role,
    content: row.content,
    ...(row.parts === undefined ? {} : { parts: row.parts }),
    createdAt: isoTime(row.createdAt),
    createdAtMs: row.createdAt,
    toolCallId: row.toolCallId,
    references: [],
    metadata: { ...row.metadata, ...(row.runId === null ? {} : { runId: row.runId }) },
  }
}

/** The status names of this family: `cancelled` for `canceled`, and `awaiting_input` for `waiting_user`. */
export function runStatusWord(status: RunRow['status']): string {
  if (status === 'canceled') return 'cancelled'
  return status === 'waiting_user' ? 'awaiting_input' : status
}

const clientToolCallView = z.object({
  toolCallId: z.string(),
  interactionId: z.string(),
  toolName: z.string(),
  input: z.unknown().describe('The arguments of the call.'),
  expiresAt: time.nullable(),
  expiresAtMs: ms.nullable(),
})

export const runView = z
  .object({
    runId: z.string(),
    agentId: z.string(),
    conversationId: z.string().nullable(),
    status: z.enum(['queued', 'running', 'awaiting_input', 'succeeded', 'failed', 'cancelled']),
    attempt: z.number(),
    engine: z
      .string()
      .nullable()
      .describe(
        'The engine that executes the run; null until it has started, and while the run is an arm of an undecided comparison.',
      ),
    cursor: z.string().describe('The cursor of the newest event of the run.'),
    createdAt: time,
    createdAtMs: ms,
    startedAt: time.nullable(),
    startedAtMs: ms.nullable(),
    endedAt: time.nullable(),
    endedAtMs: ms.nullable(),
    error: z.unknown().nullable(),
    cancelRequested: z.boolean(),
    clientToolCalls: z
      .array(clientToolCallView)
      .optional()
      .describe(
        'The calls of tools of the client that wait for a result; send it to POST /v1/agent/runs/{runId}/tool-results. Only for one run that waits.',
      ),
    usage: usageView
      .nullable()
      .describe('Over all steps; null until one has ended, and while the run is an arm of an undecided comparison.'),
  })
  .meta({ id: 'Run' })

/** `undecided`: the run is an arm of a comparison that waits for its vote, so its engine and usage are hidden. */
export function toRun(row: RunRow, undecided: boolean): z.infer<typeof runView> {
  return {
    runId: row.id,
    agentId: row.agentId,
    conversationId: shownConversationIdOrNull(row.conversationId),
    status: runStatusWord(row.status),
    attempt: row.attempt,
    engine: undecided ? null : row.engine,
    cursor: String(row.lastSeq),
    ...times({ createdAt: row.createdAt, startedAt: row.startedAt, endedAt: row.endedAt }),
    error: row.error,
    cancelRequested: row.cancel !== null,
    usage: undecided ? null : row.usage,
  } as z.infer<typeof runView>
}

/** `calls` wait for a result of the client. */
export function toClientToolCalls(calls: readonly InteractionRow[]): z.infer<typeof clientToolCallView>[] {
  return calls.map((row) => ({
    toolCallId: row.callId ?? row.id,
    interactionId: row.id,
    toolName: row.toolName ?? 'unknown',
    input: row.input,
    ...(times({ expiresAt: row.deadlineAt }) as { expiresAt: string | null; expiresAtMs: number | null }),
  }))
}

export const confirmationView = z
  .object({
    id: z.string(),
    runId: z.string(),
    conversationId: z.string().nullable(),
    toolCallId: z.string().nullable(),
    toolName: z.string().nullable(),
    message: z.string().describe('What the call will do.'),
    payload: z.unknown().describe('The arguments that were shown, or the edited arguments after the confirmation.'),
    outcome: z
      .literal('unknown')
      .nullable()
      .describe('unknown: the call may already have run before a restart; confirming it runs it again.'),
    status: z.enum(['pending', 'confirmed', 'rejected', 'failed', 'expired', 'cancelled']),
    result: z
      .unknown()
      .nullable()
      .describe(
        'What the tool returned. A long output is {"truncated": true, "fullLength", "preview", "ref"}; GET /v1/agent/runs/{runId}/outputs/{ref} has all of it.',
      ),
    error: z
      .unknown()
      .nullable()
      .describe('Why the call failed or did not run: {"code", "message"}. Of a rejected one, the reason as text.'),
    userId: z.string(),
    createdAt: time,
    createdAtMs: ms,
    updatedAt: time,
    updatedAtMs: ms,
    expiresAt: time.nullable(),
    expiresAtMs: ms.nullable(),
    confirmedAt: time.nullable(),
    confirmedAtMs: ms.nullable(),
    rejectedAt: time.nullable(),
    rejectedAtMs: ms.nullable(),
    executedAt: time.nullable(),
    executedAtMs: ms.nullable(),
  })
  .meta({ id: 'Confirmation' })

export type ConfirmationStatus = z.infer<typeof confirmationView>['status']

export function confirmationStatus(row: InteractionRow): ConfirmationStatus {
  switch (row.status) {
    case 'confirmed':
      // `failed` means that the tool ran and failed; the decision itself stays `confirmed` in the store.
      return row.error === null ? 'confirmed' : 'failed'
    case 'closed':
      return 'cancelled'
    case 'pending':
    case 'rejected':
    case 'expired':
      return row.status
    case 'replied':
    case 'auto_decided':
      return 'confirmed'
  }
}

export function toConfirmation(row: InteractionRow): z.infer<typeof confirmationView> {
  return {
    id: row.id,
    runId: row.runId,
    conversationId: shownConversationIdOrNull(row.conversationId),
    toolCallId: row.callId,
    toolName: row.toolName,
    message: row.prompt,
    payload: row.status === 'confirmed' && row.response !== null ? row.response : row.input,
    outcome: row.outcome,
    status: confirmationStatus(row),
    result: row.result,
    error: row.error ?? (row.status === 'rejected' && row.reason !== null ? row.reason : null),
    userId: row.owner,
    ...times({
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      expiresAt: row.deadlineAt,
      confirmedAt: row.status === 'confirmed' ? row.decidedAt : null,
      rejectedAt: row.status === 'rejected' ? row.decidedAt : null,
      executedAt: row.executedAt,
    }),
  } as z.infer<typeof confirmationView>
}
