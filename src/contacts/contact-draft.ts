// A contact as a vCard or CSV file holds it, and the result of reading one entry of such a
// file. Both readers return these types, and both writers take a draft.

export type ContactDraft = {
  /** The id that the file gives the contact (UID of a vCard); null if it gives none. */
  uid: string | null
  name: string
  /** Nickname. */
  alias: string | null
  /** The preferred address. */
  email: string | null
  /** The preferred number. */
  phone: string | null
  company: string | null
  position: string | null
  note: string | null
  /** Trimmed, without duplicates. */
  tags: string[]
  /** `YYYY-MM-DD`, or `--MM-DD` if the year is unknown. */
  birthday: string | null
  otherEmails: string[]
  otherPhones: string[]
}

/** One card or row of a file, in the order of the file. `index` counts entries from 0, `line` counts lines from 1. */
export type FileEntry =
  | { ok: true; index: number; line: number; contact: ContactDraft }
  /** `name` if it could be read. `reason` is a sentence for the person who imports the file. */
  | { ok: false; index: number; line: number; name: string | null; reason: string }

/** More of one kind are dropped; no real contact has as many. */
export const listItemsMax = 100

export function distinctTrimmed(texts: Iterable<string>): string[] {
  const seen = new Set<string>()
  for (const text of texts) {
    const trimmed = text.trim()
    if (trimmed !== '') seen.add(trimmed)
    if (seen.size >= listItemsMax) break
  }
  return [...seen]
}

type NameParts = Partial<Record<'prefix' | 'given' | 'middle' | 'family' | 'suffix', string | null>>

/** Names in Han or Hangul are written family name first, without a space. Null if no part has text. */
export function joinedName({ prefix, given, middle, family, suffix }: NameParts): string | null {
  const eastern = /^[\p{Script=Han}\p{Script=Hangul}]+$/u.test(`${family ?? ''}${given ?? ''}`)
  const parts = eastern ? [family, given] : [prefix, given, middle, family, suffix]
  return parts.filter((part) => part != null && part !== '').join(eastern ? '' : ' ') || null
}

const fullDate = /^(\d{4})-?(\d{2})-?(\d{2})(?:$|[T\s])/
const dateWithoutYear = /^--(\d{2})-?(\d{2})(?:$|[T\s])/
const dateWithSlashes = /^(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?:$|\s)/

/** A birthday in the form of `ContactDraft.birthday`; null if the text has no month and day, or no such day exists. */
export function normalBirthday(text: string): string | null {
  const trimmed = text.trim()
  const withYear = fullDate.exec(trimmed) ?? dateWithSlashes.exec(trimmed)
  if (withYear !== null) {
    const [year, month, day] = [withYear[1] ?? '', withYear[2] ?? '', withYear[3] ?? '']
    if (!dayExists(Number(year), Number(month), Number(day))) return null
    return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
  }
  const withoutYear = dateWithoutYear.exec(trimmed)
  // A leap year, so that 29 February is accepted.
  if (withoutYear === null || !dayExists(2000, Number(withoutYear[1]), Number(withoutYear[2]))) return null
  return `--${withoutYear[1]}-${withoutYear[2]}`
}

function dayExists(year: number, month: number, day: number): boolean {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}
