// Rules for contacts that are the same for every store: what a search looks at, and what an
// imported entry changes.

import { AppError } from '../errors/app-error.ts'
import type { ContactFields, ContactImport, ContactRow } from './contact-store.ts'

/** What is searched of one contact. All contacts of an owner are searched on the main thread, so this is bounded. */
const searchCharsMax = 300

/** More or longer words do not make a search better, only slower. */
const wordsMax = 8
const wordCharsMax = 64

/** The same spelling for the text that is searched and for the words that are looked for. */
function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

export function searchText({ name, alias, company, position, email, phone, tags }: ContactFields): string {
  const fields = [name, alias, company, position, email, phone, ...tags].filter((field) => field !== null)
  // A line end between the fields: no word that is looked for contains one, so no word matches across two fields.
  return folded(fields.join('\n')).slice(0, searchCharsMax)
}

export function searchWords(search: string | undefined): string[] {
  const words = folded(search ?? '')
    .split(/\s+/)
    .filter((word) => word !== '')
  return words.slice(0, wordsMax).map((word) => word.slice(0, wordCharsMax))
}

const emptyFields: Omit<ContactFields, 'name'> = {
  uid: null,
  alias: null,
  email: null,
  phone: null,
  company: null,
  position: null,
  note: null,
  profile: {},
  tags: [],
}

/**
 * How many contacts with the same email, name or phone an imported entry is compared with, so that a file of equal names takes
 * no quadratic time. An entry that is created because of this bound is found by its uid, email or phone the next time.
 */
export const candidatesMax = 100

/** The contact that an imported entry creates. */
export function contactOfImport(owner: string, entry: ContactImport, at: number): ContactRow {
  const { newId, id, ...fields } = entry
  return { ...emptyFields, ...fields, owner, id: id ?? newId, createdAt: at, updatedAt: at }
}

/**
 * A contact with what an imported entry says about it. `freeUid` is the entry's uid unless another contact has it: a uid
 * that is known never changes, since cards are matched by it, and no two contacts share one.
 */
export function mergedContact(
  found: ContactRow,
  entry: ContactImport,
  keepName: boolean,
  freeUid: string | null,
): ContactRow {
  const { newId: _newId, id: _id, ...fields } = entry
  return {
    ...found,
    ...fields,
    ...(keepName ? { name: found.name } : {}),
    uid: found.uid ?? freeUid,
    tags: [...new Set([...found.tags, ...(fields.tags ?? [])])],
    profile: { ...found.profile, ...fields.profile },
  }
}

export function contactsFull(max: number): AppError {
  return new AppError(
    'contacts_full',
    `This user would have more than ${max} contacts, which is as many as one user may have; delete some first.`,
  )
}

export function contactExists(id: string): AppError {
  return new AppError(
    'contact_exists',
    `There is a contact ${JSON.stringify(id)} already. Change it with PATCH, or choose another id.`,
  )
}
