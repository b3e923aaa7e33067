// The bodies of requests that create or change contacts and their records. Texts are
// trimmed, and blank text means "none". In a PATCH a field that is absent stays as it is,
// and null empties it.

import { z } from 'zod'
import { normalBirthday } from '../../contacts/contact-draft.ts'
import { contactLimits, isContactId, isEmail, todoStatuses } from '../../contacts/contact-limits.ts'
import { givenTime } from '../../contacts/given-time.ts'
import { jsonValue } from '../json-value.ts'

const user = { userId: z.string().max(200).nullish() }

export function text(charsMax: number) {
  return z
    .string()
    .max(charsMax)
    .nullable()
    .transform((value) => (value === null || value.trim() === '' ? null : value.trim()))
}

export function requiredText(charsMax: number) {
  return z.string().trim().min(1).max(charsMax)
}

function changesSomething(fields: object): boolean {
  return Object.values(fields).some((value) => value !== undefined)
}

const nothingToChange = { message: 'Nothing to change: send at least one of the fields of a contact or record.' }

/** The messages of refinements are shown as they are, so they name the field. */
function json(field: string) {
  return z
    .record(z.string(), jsonValue)
    .nullable()
    .transform((value) => value ?? {})
    .refine((value) => JSON.stringify(value).length <= contactLimits.jsonChars, {
      message: `"${field}" must be at most ${contactLimits.jsonChars} characters long as JSON.`,
    })
}

const tags = z
  .array(z.string().max(contactLimits.tagChars))
  .max(contactLimits.tags)
  .nullable()
  .transform((list) => [...new Set((list ?? []).map((tag) => tag.trim()).filter((tag) => tag !== ''))])

export function instant(field: string) {
  return z
    .union([z.string().max(40), z.number()])
    .nullable()
    .transform((value, context) => {
      if (value === null) return null
      const at = givenTime(value)
      if (at !== null) return at
      const message = `"${field}" must be an ISO 8601 time such as 2026-02-09T12:00:00.000Z, or epoch milliseconds.`
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
    .describe('ISO 8601 (UTC if it has no zone), or epoch milliseconds.')
}

/** The birthday is stored in one form, because the upcoming dates are computed from it. */
const profile = json('profile').transform((given, context) => {
  const { birthday, ...others } = given
  if (birthday === undefined || birthday === null) return given
  const written = typeof birthday === 'string' ? birthday.trim() : null
  if (written === '') return others
  const date = written === null ? null : normalBirthday(written)
  if (date !== null) return { ...given, birthday: date }
  const message = '"profile.birthday" must be a date such as 1990-05-17, or --05-17 without a year.'
  context.addIssue({ code: 'custom', path: ['birthday'], message })
  return z.NEVER
})

const contactFields = {
  alias: text(contactLimits.nameChars).optional(),
  email: text(contactLimits.emailChars)
    .refine((email) => email === null || isEmail(email), {
      message: '"email" must be an address such as ann@example.com.',
    })
    .optional(),
  phone: text(contactLimits.phoneChars).optional(),
  company: text(contactLimits.nameChars).optional(),
  position: text(contactLimits.nameChars).optional(),
  note: text(contactLimits.noteChars).optional(),
  profile: profile.optional().describe('Free details. `birthday` is a date: 1990-05-17, or --05-17 without a year.'),
  tags: tags.optional(),
}

const name = requiredText(contactLimits.nameChars)

/** Clients may say `displayName` for `name`; `name` wins. */
const names = { name: name.optional(), displayName: name.optional().describe('The same as name.') }

export const newContactBody = z
  .object({
    ...names,
    id: z
      .string()
      .trim()
      .refine(isContactId, {
        message: `"id" must have 1 to ${contactLimits.idChars} letters, digits and _ . : @ ~ -, and must not be "import" or "export".`,
      })
      .nullish()
      .describe('An id of your choice, unique among your contacts. Without it the server generates one.'),
    ...contactFields,
    ...user,
  })
  .transform(({ displayName, userId: _userId, id, ...fields }, context) => {
    const given = fields.name ?? displayName
    if (given === undefined) {
      context.addIssue({ code: 'custom', path: ['name'], message: '"name" is missing; it must be a string.' })
      return z.NEVER
    }
    return { ...fields, name: given, id: id ?? undefined }
  })

export const contactChangesBody = z
  .object({ ...names, ...contactFields, ...user })
  .transform(({ displayName, userId: _userId, ...fields }) => {
    const given = fields.name ?? displayName
    return given === undefined ? fields : { ...fields, name: given }
  })
  .refine(changesSomething, nothingToChange)

const sourceConversationId = text(200)
const sourceMessageIds = z
  .array(z.string().min(1).max(200))
  .max(contactLimits.sourceMessages)
  .nullable()
  .transform((list) => list ?? [])

/** A record starts with these where the body says nothing; a PATCH leaves the field as it is. */
const sources = {
  sourceConversationId: sourceConversationId.default(null).describe('The conversation that the record was taken from.'),
  sourceMessageIds: sourceMessageIds.default([]),
}
const sourceChanges = {
  sourceConversationId: sourceConversationId.optional(),
  sourceMessageIds: sourceMessageIds.optional(),
}

const content = requiredText(contactLimits.contentChars)
const title = requiredText(contactLimits.titleChars)
const status = z.enum(todoStatuses)

function withoutUser<Fields extends { userId?: unknown }>({
  userId: _userId,
  ...fields
}: Fields): Omit<Fields, 'userId'> {
  return fields
}

export const newFactBody = z
  .object({ content, metadata: json('metadata').default({}), ...sources, ...user })
  .transform(withoutUser)

export const factChangesBody = z
  .object({ content: content.optional(), metadata: json('metadata').optional(), ...sourceChanges, ...user })
  .transform(withoutUser)
  .refine(changesSomething, nothingToChange)

export const newTodoBody = z
  .object({ content, status: status.default('pending'), dueAt: instant('dueAt').default(null), ...sources, ...user })
  .transform(withoutUser)

export const todoChangesBody = z
  .object({
    content: content.optional(),
    status: status.optional(),
    dueAt: instant('dueAt').optional(),
    ...sourceChanges,
    ...user,
  })
  .transform(withoutUser)
  .refine(changesSomething, nothingToChange)

const description = text(contactLimits.contentChars)

export const newEventBody = z
  .object({
    title,
    description: description.default(null),
    details: json('details').default({}),
    eventDate: instant('eventDate').default(null),
    ...sources,
    ...user,
  })
  .transform(withoutUser)

export const eventChangesBody = z
  .object({
    title: title.optional(),
    description: description.optional(),
    details: json('details').optional(),
    eventDate: instant('eventDate').optional(),
    ...sourceChanges,
    ...user,
  })
  .transform(withoutUser)
  .refine(changesSomething, nothingToChange)
