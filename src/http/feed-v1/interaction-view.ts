// Interactions of all kinds → the JSON of the feed and of the inbox.

import { z } from 'zod'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import type { InteractionRow } from '../../stores/interaction-store.ts'
import { ms, time, times } from '../views.ts'

export const interactionView = z
  .object({
    id: z.string(),
    runId: z.string(),
    conversationId: z.string().nullable(),
    kind: z.enum(['confirmation', 'question', 'client_tool']),
    status: z.enum(['pending', 'confirmed', 'rejected', 'replied', 'auto_decided', 'expired', 'closed']),
    toolCallId: z.string().nullable(),
    toolName: z.string().nullable(),
    message: z.string().describe('What will happen, or the question.'),
    payload: z.unknown().describe('The arguments that are shown. In the feed null if they are long.'),
    outcome: z.literal('unknown').nullable().describe('unknown: the call may already have run before a restart.'),
    reason: z.string().nullable(),
    decidedBy: z.string().nullable(),
    createdAt: time,
    createdAtMs: ms,
    expiresAt: time.nullable(),
    expiresAtMs: ms.nullable(),
    decidedAt: time.nullable(),
    decidedAtMs: ms.nullable(),
    executedAt: time.nullable(),
    executedAtMs: ms.nullable(),
  })
  .meta({ id: 'Interaction' })

export function toInteractionView(row: InteractionRow): z.infer<typeof interactionView> {
  return {
    id: row.id,
    runId: row.runId,
    conversationId: shownConversationIdOrNull(row.conversationId),
    kind: row.kind,
    status: row.status,
    toolCallId: row.callId,
    toolName: row.toolName,
    message: row.prompt,
    payload: row.input,
    outcome: row.outcome,
    reason: row.reason,
    decidedBy: row.decidedBy,
    ...times({
      createdAt: row.createdAt,
      expiresAt: row.deadlineAt,
      decidedAt: row.decidedAt,
      executedAt: row.executedAt,
    }),
  } as z.infer<typeof interactionView>
}
