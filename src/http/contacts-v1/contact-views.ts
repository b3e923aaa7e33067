// Contacts and their records → the JSON of the /v1 family.

import { z } from 'zod'
import { todoStatuses } from '../../contacts/contact-limits.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import type {
  ContactEventRow,
  ContactFactRow,
  ContactRecord,
  ContactRow,
  ContactTodoRow,
} from '../../stores/contact-store.ts'
import { ms, time, times } from '../views.ts'

const changed = { createdAt: time, createdAtMs: ms, updatedAt: time, updatedAtMs: ms }
const json = z.record(z.string(), z.unknown())

export const contactView = z
  .object({
    id: z.string(),
    name: z.string(),
    alias: z.string().nullable(),
    email: z.string().nullable(),
    phone: z.string().nullable(),
    company: z.string().nullable(),
    position: z.string().nullable(),
    note: z.string().nullable(),
    profile: json,
    tags: z.array(z.string()),
    uid: z.string().nullable().describe('The UID of the vCard that the contact was imported from.'),
    userId: z.string(),
    ...changed,
  })
  .meta({ id: 'Contact' })

export function toContact({ owner, createdAt, updatedAt, ...row }: ContactRow): z.infer<typeof contactView> {
  return { ...row, userId: owner, ...times({ createdAt, updatedAt }) } as z.infer<typeof contactView>
}

const recordFields = {
  id: z.string(),
  contactId: z.string(),
  sourceConversationId: z.string().nullable(),
  sourceMessageIds: z.array(z.string()),
  ...changed,
}

function toRecord(row: ContactRecord): Record<string, unknown> {
  return {
    id: row.id,
    contactId: row.contactId,
    sourceConversationId: shownConversationIdOrNull(row.sourceConversationId),
    sourceMessageIds: row.sourceMessageIds,
    ...times({ createdAt: row.createdAt, updatedAt: row.updatedAt }),
  }
}

export const factView = z.object({ ...recordFields, content: z.string(), metadata: json }).meta({ id: 'ContactFact' })

export function toFact(row: ContactFactRow): z.infer<typeof factView> {
  const { content, metadata } = row
  return { ...toRecord(row), content, metadata } as z.infer<typeof factView>
}

export const todoView = z
  .object({
    ...recordFields,
    content: z.string(),
    status: z.enum(todoStatuses),
    dueAt: time.nullable(),
    dueAtMs: ms.nullable(),
  })
  .meta({ id: 'ContactTodo' })

export function toTodo(row: ContactTodoRow): z.infer<typeof todoView> {
  const { content, status, dueAt } = row
  return { ...toRecord(row), content, status, ...times({ dueAt }) } as z.infer<typeof todoView>
}

export const eventView = z
  .object({
    ...recordFields,
    title: z.string(),
    description: z.string().nullable(),
    details: json,
    eventDate: time.nullable(),
    eventDateMs: ms.nullable(),
  })
  .meta({ id: 'ContactEvent' })

export function toEvent(row: ContactEventRow): z.infer<typeof eventView> {
  const { title, description, details, eventDate } = row
  return { ...toRecord(row), title, description, details, ...times({ eventDate }) } as z.infer<typeof eventView>
}
