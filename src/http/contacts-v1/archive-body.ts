// The body of PATCH /v1/conversation-archives/:archiveId. It has the form of the answer, so
// that a reviewer can send back what is to be kept.

import { z } from 'zod'
import { archiveLimits } from '../../contacts/archive-payload.ts'
import { contactLimits, isEmail } from '../../contacts/contact-limits.ts'
import { instant, requiredText, text } from './contact-body.ts'

const position = z.number().int().min(0).optional()

const cited = {
  citations: z
    .array(
      z
        .object({ messageId: z.string().min(1).max(200), start: position, end: position })
        .refine(({ start, end }) => (start === undefined) === (end === undefined), {
          message: 'A citation has both "start" and "end", or none of them.',
        })
        .transform(({ messageId, start, end }) =>
          start === undefined || end === undefined ? { messageId } : { messageId, start, end },
        ),
    )
    .min(1)
    .max(archiveLimits.citations),
}

const contactId = text(contactLimits.idChars).default(null)
const ofContact = { contactRef: text(archiveLimits.refChars).default(null), contactId, ...cited }

function list<Entry extends z.ZodType>(entry: Entry) {
  return z.array(entry).max(archiveLimits.entries).optional()
}

const unapplied = { recordId: null }

export const archiveChangesBody = z.object({
  payload: z
    .object({
      contacts: list(
        z.object({
          ref: requiredText(archiveLimits.refChars),
          contactId,
          name: requiredText(contactLimits.nameChars),
          alias: text(contactLimits.nameChars).default(null),
          email: text(contactLimits.emailChars)
            .refine((email) => email === null || isEmail(email), {
              message: '"email" must be an address such as ann@example.com.',
            })
            .default(null),
          phone: text(contactLimits.phoneChars).default(null),
          company: text(contactLimits.nameChars).default(null),
          position: text(contactLimits.nameChars).default(null),
          ...cited,
        }),
      ),
      events: list(
        z
          .object({
            ...ofContact,
            title: requiredText(contactLimits.titleChars),
            description: text(contactLimits.contentChars).default(null),
            eventDate: instant('eventDate').default(null),
          })
          .transform((entry) => ({ ...entry, ...unapplied })),
      ),
      facts: list(
        z
          .object({ ...ofContact, content: requiredText(contactLimits.contentChars) })
          .transform((entry) => ({ ...entry, ...unapplied })),
      ),
      todos: list(
        z
          .object({
            ...ofContact,
            content: requiredText(contactLimits.contentChars),
            dueAt: instant('dueAt').default(null),
          })
          .transform((entry) => ({ ...entry, ...unapplied })),
      ),
    })
    .refine((lists) => Object.values(lists).some((given) => given !== undefined), {
      message: 'Nothing to change: send at least one of "contacts", "events", "facts" and "todos".',
    }),
  userId: z.string().max(200).nullish(),
})
