// Contacts: reading, searching, changing and importing them. A search looks for its words in one
// column that holds the searchable fields in lower case.

import {
  candidatesMax,
  contactExists,
  contactOfImport,
  contactsFull,
  mergedContact,
  searchText,
  searchWords,
} from '../contact-rules.ts'
import type { ContactImport, ContactImportOutcome, ContactRow, ContactStore } from '../contact-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row, Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

const columns: Columns<ContactRow> = {
  owner: 'value',
  id: 'value',
  uid: 'value',
  name: 'value',
  alias: 'value',
  email: 'value',
  phone: 'value',
  company: 'value',
  position: 'value',
  note: 'value',
  profile: 'json',
  tags: 'json',
  createdAt: 'value',
  updatedAt: 'value',
}
const toContact = rowReader<ContactRow>(columns, { profile: {}, tags: [] })
const one = (row: Row | undefined) => (row === undefined ? undefined : toContact(row))
const long = ['note', 'profile', 'tags']

type ContactPart = Pick<
  ContactStore,
  | 'createContact'
  | 'readContact'
  | 'listContacts'
  | 'pageOfContacts'
  | 'updateContact'
  | 'deleteContact'
  | 'importContacts'
>

export function contactStore({ read, write }: PartAccess): ContactPart {
  return {
    createContact: (row, max) =>
      write(async (db) => {
        await lockContacts(db, row.owner)
        if ((await readContact(db, row.owner, row.id)) !== undefined) throw contactExists(row.id)
        await checkRoom(db, row.owner, 1, max)
        await createContact(db, row)
      }),
    readContact: (owner, id) => read((db) => readContact(db, owner, id)),
    listContacts: (owner, { limit, offset, search, tag }) =>
      read(async (db) => {
        const words = searchWords(search)
        const conditions = ['owner = ?', ...words.map(() => 'strpos(search, ?) > 0')]
        const values: Value[] = [owner, ...words]
        if (tag !== undefined) {
          conditions.push('serial IN (SELECT serial FROM contact_tags WHERE owner = ? AND tag = ?)')
          values.push(owner, tag)
        }
        const found = `FROM contacts WHERE ${conditions.join(' AND ')}`
        const total = Number((await db.get(`SELECT count(*) AS count ${found}`, ...values))?.['count'])
        const sql = `SELECT * ${found} ORDER BY updated_at DESC, serial DESC`
        return { ...(await readPage(db, { sql, values, limit, offset, long }, toContact)), total }
      }),
    pageOfContacts: (owner, { limit, after = 0 }) =>
      read(async (db) => {
        let next = after
        const sql = 'SELECT * FROM contacts WHERE owner = ? AND serial > ? ORDER BY serial'
        const page = await readPage(db, { sql, values: [owner, after], limit, long }, (row) => {
          next = row['serial'] as number
          return toContact(row)
        })
        return { ...page, next: page.more ? next : null }
      }),
    updateContact: (owner, id, changes, at) =>
      write(async (db) => {
        const found = one(
          await db.get('SELECT * FROM contacts WHERE owner = ? AND id = ? FOR NO KEY UPDATE', owner, id),
        )
        if (found === undefined) return undefined
        await saveContact(db, { ...found, ...changes, updatedAt: at })
        return await readContact(db, owner, id)
      }),
    deleteContact: (owner, id) =>
      write(async (db) => {
        // No conversation can be linked to the contact from here on.
        const found = await db.get('SELECT serial FROM contacts WHERE owner = ? AND id = ? FOR UPDATE', owner, id)
        if (found === undefined) return 'missing'
        const linked = await db.get(
          'SELECT id FROM conversations WHERE owner = ? AND contact_id = ? LIMIT 1',
          owner,
          id,
        )
        if (linked !== undefined) return 'has_conversations'
        await db.run('DELETE FROM contacts WHERE owner = ? AND id = ?', owner, id)
        return 'deleted'
      }),
    importContacts: (owner, entries, at, max) =>
      write(async (db) => {
        await lockContacts(db, owner)
        const outcomes = []
        for (const entry of entries) outcomes.push(await upsertContact(db, owner, entry, at))
        // Counted afterwards: only now it is known how many were created. If there are too many, none is kept.
        if (outcomes.some(({ outcome }) => outcome === 'created')) await checkRoom(db, owner, 0, max)
        return outcomes
      }),
  }
}

/** Changes that look at all contacts of an owner come one after the other. */
export async function lockContacts(db: Db, owner: string): Promise<void> {
  await db.get(`SELECT pg_advisory_xact_lock(hashtextextended('contacts ' || ?, 0)) IS NULL AS locked`, owner)
}

async function readContact(db: Db, owner: string, id: string): Promise<ContactRow | undefined> {
  return one(await db.get('SELECT * FROM contacts WHERE owner = ? AND id = ?', owner, id))
}

async function createContact(db: Db, row: ContactRow): Promise<void> {
  const stored = { ...columnsOf(columns, row), search: searchText(row) }
  const [inserted] = await insertRow(db, 'contacts', stored, 'RETURNING serial')
  await addTags(db, row, inserted?.['serial'] as number)
}

async function saveContact(db: Db, row: ContactRow): Promise<void> {
  const stored: Record<string, Value> = { ...columnsOf(columns, row), search: searchText(row) }
  const names = Object.keys(stored).filter((name) => name !== 'owner' && name !== 'id' && name !== 'created_at')
  const [updated] = await db.all(
    `UPDATE contacts SET ${names.map((name) => `${name} = ?`).join(', ')} WHERE owner = ? AND id = ? RETURNING serial`,
    ...names.map((name) => stored[name] as Value),
    row.owner,
    row.id,
  )
  const serial = updated?.['serial'] as number
  await db.run('DELETE FROM contact_tags WHERE serial = ?', serial)
  await addTags(db, row, serial)
}

async function addTags(db: Db, { owner, tags }: ContactRow, serial: number): Promise<void> {
  for (const tag of tags) {
    await insertRow(db, 'contact_tags', { owner, tag, serial }, 'ON CONFLICT DO NOTHING')
  }
}

export async function checkRoom(db: Db, owner: string, more: number, max: number): Promise<void> {
  const row = await db.get('SELECT count(*) AS count FROM contacts WHERE owner = ?', owner)
  if (Number(row?.['count']) + more > max) throw contactsFull(max)
}

/** Creates or updates one contact as `ContactStore.importContacts` does. The caller has locked the owner's contacts. */
export async function upsertContact(
  db: Db,
  owner: string,
  entry: ContactImport,
  at: number,
  { keepName = false }: { keepName?: boolean } = {},
): Promise<ContactImportOutcome> {
  const found = await matching(db, owner, entry)
  if (found === undefined) {
    const row = contactOfImport(owner, entry, at)
    await createContact(db, row)
    return { outcome: 'created', id: row.id }
  }
  const merged = mergedContact(found, entry, keepName, await freeUid(db, owner, entry.uid ?? null))
  if (JSON.stringify(merged) === JSON.stringify(found)) return { outcome: 'unchanged', id: found.id }
  await saveContact(db, { ...merged, updatedAt: at })
  return { outcome: 'updated', id: found.id }
}

async function freeUid(db: Db, owner: string, uid: string | null): Promise<string | null> {
  if (uid === null) return null
  const taken = await db.get('SELECT serial FROM contacts WHERE owner = ? AND uid = ?', owner, uid)
  return taken === undefined ? uid : null
}

/** The contact that an imported entry describes; see `ContactStore.importContacts`. */
async function matching(db: Db, owner: string, entry: ContactImport): Promise<ContactRow | undefined> {
  const { id, uid = null, email = null, phone = null, name } = entry
  const uidAgrees = '(uid IS NULL OR ?::text IS NULL OR uid = ?)'
  const emailAgrees = '(email IS NULL OR ?::text IS NULL OR lower(email) = lower(?))'
  const phoneAgrees = '(phone IS NULL OR ?::text IS NULL OR phone = ?)'
  const first = (condition: string, agrees: string, ...values: Value[]) =>
    db.get(
      `SELECT * FROM (SELECT * FROM contacts WHERE owner = ? AND ${condition} ORDER BY serial LIMIT ${candidatesMax}) AS candidates
       WHERE ${agrees} ORDER BY serial LIMIT 1`,
      owner,
      ...values,
    )
  const known =
    (id === undefined ? undefined : await readContact(db, owner, id)) ??
    (uid === null
      ? undefined
      : (one(await db.get('SELECT * FROM contacts WHERE owner = ? AND uid = ?', owner, uid)) ??
        (await readContact(db, owner, uid))))
  if (known !== undefined) return known
  const row =
    (email === null ? undefined : await first('lower(email) = lower(?)', uidAgrees, email, uid, uid)) ??
    (phone === null
      ? undefined
      : await first(
          'name = ? AND phone = ?',
          `${uidAgrees} AND ${emailAgrees}`,
          name,
          phone,
          uid,
          uid,
          email,
          email,
        )) ??
    (await first(
      'name = ?',
      `${uidAgrees} AND ${emailAgrees} AND ${phoneAgrees}`,
      name,
      uid,
      uid,
      email,
      email,
      phone,
      phone,
    ))
  return one(row)
}
