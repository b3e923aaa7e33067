// How large a contact and its records may be. The largest row times the largest page must
// stay below the bound of a page in the store (4 Mi characters), because a page that is cut
// there would leave a gap in a list with page numbers.

export const contactLimits = {
  /** Of one user. A search looks at all of them. */
  contacts: 25_000,
  idChars: 200,
  nameChars: 200,
  emailChars: 320,
  phoneChars: 100,
  noteChars: 10_000,
  tags: 50,
  tagChars: 100,
  /** Of `profile`, `metadata` and `details`, as JSON. */
  jsonChars: 16_000,
  contentChars: 10_000,
  titleChars: 500,
  sourceMessages: 50,
  /** Of one page. */
  pageRows: 100,
} as const

export function isEmail(text: string): boolean {
  return /^[^\s@]+@[^\s@]+$/.test(text)
}

export const todoStatuses = ['pending', 'completed', 'canceled'] as const

/** These stand in the place of an id in the addresses of the import and the export. */
const reservedIds: ReadonlySet<string> = new Set(['import', 'export', '.', '..'])

/** Whether a client may choose this id: it must be readable in the path of an address. */
export function isContactId(id: string): boolean {
  return id.length <= contactLimits.idChars && /^[\p{L}\p{N}_.:@~-]+$/u.test(id) && !reservedIds.has(id)
}
