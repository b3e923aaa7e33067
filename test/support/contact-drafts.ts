// Contacts as files hold them, for tests: one with defaults, and any that can be written to
// a file and read back.

import fc from 'fast-check'
import type { ContactDraft } from '../../src/contacts/contact-draft.ts'

export function draftOf(fields: Partial<ContactDraft> = {}): ContactDraft {
  return {
    uid: null,
    name: 'Anna Smith',
    alias: null,
    email: null,
    phone: null,
    company: null,
    position: null,
    note: null,
    tags: [],
    birthday: null,
    otherEmails: [],
    otherPhones: [],
    ...fields,
  }
}

/** Characters that mean something in one of the formats, and some that are more than one byte or code unit. */
const char = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...`abc ,;:\\"'=+-@nN.^|*张三é😀`) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }) },
)

/** Files keep neither control characters nor spaces at the ends. */
const normal = (text: string) => text.replaceAll(/[\p{Cc}\uFEFF]/gu, '').trim()
const line = fc
  .array(char, { minLength: 1, maxLength: 40 })
  .map((chars) => normal(chars.join('')))
  .filter((text) => text !== '')
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const texts = fc.uniqueArray(line, { maxLength: 4 })
const twoDigits = (value: number) => String(value).padStart(2, '0')
const birthday = fc
  .tuple(maybe(fc.integer({ min: 1605, max: 2026 })), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 28 }))
  .map(([year, month, day]) => `${year === null ? '-' : year}-${twoDigits(month)}-${twoDigits(day)}`)

export const draftArbitrary: fc.Arbitrary<ContactDraft> = fc
  .record({
    uid: maybe(line),
    name: line,
    // A nickname is a list in vCard; the first item is read.
    alias: maybe(line),
    company: maybe(line),
    position: maybe(line),
    note: maybe(fc.array(line, { minLength: 1, maxLength: 3 }).map((lines) => lines.join('\n'))),
    tags: texts,
    birthday: maybe(birthday),
    emails: texts,
    phones: texts,
  })
  .map(({ emails, phones, ...draft }) => ({
    ...draft,
    email: emails[0] ?? null,
    phone: phones[0] ?? null,
    otherEmails: emails.slice(1),
    otherPhones: phones.slice(1),
  }))
