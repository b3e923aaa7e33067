// Archives of conversations → the JSON of the /v1 family.

import { z } from 'zod'
import { shownConversationId } from '../../kit/conversation-id.ts'
import type { ArchiveRow } from '../../stores/archive-store.ts'
import { ms, time, times } from '../views.ts'

const cited = {
  citations: z
    .array(z.object({ messageId: z.string(), start: z.number().optional(), end: z.number().optional() }))
    .describe('The messages that state it.'),
}

const ofContact = {
  contactRef: z.string().nullable().describe('The ref of the contact in contacts that the entry is about.'),
  contactId: z
    .string()
    .nullable()
    .describe('The contact that the entry is about. An entry without contactRef and contactId is not applied.'),
  recordId: z.string().nullable().describe('The record that the entry became when the archive was applied.'),
  ...cited,
}

const nullableText = z.string().nullable()
const sentences = z.array(z.string())

export const archiveView = z
  .object({
    id: z.string(),
    conversationId: z.string(),
    status: z.enum(['ready_for_review', 'applied', 'discarded']),
    summary: z.string(),
    payload: z.object({
      contacts: z.array(
        z.object({
          ref: z.string(),
          contactId: z
            .string()
            .nullable()
            .describe(
              'The contact that is updated. If null, a contact is looked for by email, then by name, or created.',
            ),
          name: z.string(),
          alias: nullableText,
          email: nullableText,
          phone: nullableText,
          company: nullableText,
          position: nullableText,
          ...cited,
        }),
      ),
      events: z.array(
        z.object({
          ...ofContact,
          title: z.string(),
          description: nullableText,
          eventDate: time.nullable(),
          eventDateMs: ms.nullable(),
        }),
      ),
      facts: z.array(z.object({ ...ofContact, content: z.string() })),
      todos: z.array(z.object({ ...ofContact, content: z.string(), dueAt: time.nullable(), dueAtMs: ms.nullable() })),
      keyPoints: sentences,
      decisions: sentences,
      actionItems: sentences,
      participants: sentences,
    }),
    computed: z.boolean().describe('True if the archive was computed and not written by a language model.'),
    runId: z.string().describe('The run that extracted it.'),
    snapshotId: z.string().nullable(),
    createdAt: time,
    createdAtMs: ms,
    updatedAt: time,
    updatedAtMs: ms,
    appliedAt: time.nullable(),
    appliedAtMs: ms.nullable(),
    discardedAt: time.nullable(),
    discardedAtMs: ms.nullable(),
  })
  .meta({ id: 'ConversationArchive' })

export function toArchiveView(row: ArchiveRow): z.infer<typeof archiveView> {
  const { id, conversationId, status, summary, payload, computed, runId, snapshotId } = row
  const { createdAt, updatedAt, appliedAt, discardedAt } = row
  return {
    id,
    conversationId: shownConversationId(conversationId),
    status,
    summary,
    payload: {
      ...payload,
      events: payload.events.map(({ eventDate, ...entry }) => ({ ...entry, ...times({ eventDate }) })),
      todos: payload.todos.map(({ dueAt, ...entry }) => ({ ...entry, ...times({ dueAt }) })),
    },
    computed,
    runId,
    snapshotId,
    ...times({ createdAt, updatedAt, appliedAt, discardedAt }),
  } as z.infer<typeof archiveView>
}
