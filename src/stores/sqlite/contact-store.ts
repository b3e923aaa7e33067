// Contacts: reading, searching, changing and importing them. A search looks for its words
// in one column that holds the searchable fields in lower case; an index holds that column,
// so a search reads no contact that it does not return.

import type { DatabaseSync } from 'node:sqlite'
import type { JsonValue } from '../../journal/event.ts'
import type {
  ContactImport,
  ContactImportOutcome,
  ContactListPage,
  ContactRow,
  ContactStore,
} from '../contact-store.ts'
import {
  candidatesMax,
  contactExists,
  contactOfImport,
  contactsFull,
  mergedContact,
  searchText,
  searchWords,
} from '../contact-rules.ts'
import type { CountedPage } from '../row-page.ts'
import type { ContactCommands, Handlers } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

function toContact(row: Row): ContactRow {
  return {
    owner: row.owner as string,
    id: row.id as string,
    uid: row.uid as string | null,
    name: row.name as string,
    alias: row.alias as string | null,
    email: row.email as string | null,
    phone: row.phone as string | null,
    company: row.company as string | null,
    position: row.position as string | null,
    note: row.note as string | null,
    profile: fromJson<Record<string, JsonValue>>(row.profile) ?? {},
    tags: fromJson<string[]>(row.tags) ?? [],
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
  }
}

export function contactStore({
  db,
  read,
  write,
}: PartAccess): Pick<
  ContactStore,
  | 'createContact'
  | 'readContact'
  | 'listContacts'
  | 'pageOfContacts'
  | 'updateContact'
  | 'deleteContact'
  | 'importContacts'
> {
  const reader = contactReader(db)
  return {
    createContact: async (row, max) => void (await write('createContact', { row, max })),
    readContact: (owner, id) => read(() => reader.read(owner, id)),
    listContacts: (owner, page) => read(() => reader.list(owner, page)),
    pageOfContacts: (owner, page) => read(() => reader.page(owner, page)),
    updateContact: async (owner, id, changes, at) =>
      (await write('updateContact', { owner, id, changes, at })) ?? undefined,
    deleteContact: (owner, id) => write('deleteContact', { owner, id }),
    importContacts: (owner, entries, at, max) => write('importContacts', { owner, entries, at, max }),
  }
}

function contactReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const byId = db.prepare('SELECT * FROM contacts WHERE owner = ? AND id = ?')
  const after = db.prepare('SELECT * FROM contacts WHERE owner = ? AND serial > ? ORDER BY serial LIMIT ?')
  const one = (row: Row | undefined) => (row === undefined ? undefined : toContact(row))

  return {
    read: (owner: string, id: string) => one(byId.get(owner, id)),

    list(owner: string, { limit, offset, search, tag }: ContactListPage): CountedPage<ContactRow> {
      const words = searchWords(search)
      // The number of SQL texts is small: it depends on the number of words and on whether there is a tag.
      const conditions = ['owner = ?', ...words.map(() => 'instr(search, ?) > 0')]
      const values: Value[] = [owner, ...words]
      if (tag !== undefined) {
        conditions.push('serial IN (SELECT serial FROM contact_tags WHERE owner = ? AND tag = ?)')
        values.push(owner, tag)
      }
      const found = `FROM contacts INDEXED BY contacts_by_update WHERE ${conditions.join(' AND ')}`
      const { count } = statement(`SELECT count(*) AS count ${found}`).get(...values) as { count: number }
      const order = 'ORDER BY updated_at DESC, serial DESC'
      // `LIMIT a, b` is offset and limit.
      const page = statement(
        `SELECT * FROM contacts WHERE serial IN (SELECT serial ${found} ${order} LIMIT ?, ?) ${order}`,
      )
      return { ...readPage(page, [...values, offset], limit, toContact), total: count }
    },

    page(owner: string, { limit, after: cursor = 0 }: { limit: number; after?: number }) {
      let next = cursor
      const page = readPage(after, [owner, cursor], limit, (row) => {
        next = row.serial as number
        return toContact(row)
      })
      return { ...page, next: page.more ? next : null }
    },
  }
}

export type ContactWriter = ReturnType<typeof contactWriter>

export function contactWriter(db: DatabaseSync) {
  const reader = contactReader(db)
  const insert = db.prepare(
    `INSERT INTO contacts (owner, id, uid, name, search, alias, email, phone, company, position, created_at, updated_at,
       tags, note, profile)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial`,
  )
  const update = db.prepare(
    `UPDATE contacts SET uid = ?, name = ?, search = ?, alias = ?, email = ?, phone = ?, company = ?, position = ?,
       updated_at = ?, tags = ?, note = ?, profile = ?
     WHERE owner = ? AND id = ? RETURNING serial`,
  )
  const remove = db.prepare('DELETE FROM contacts WHERE owner = ? AND id = ?')
  const addTag = db.prepare('INSERT OR IGNORE INTO contact_tags (owner, tag, serial) VALUES (?, ?, ?)')
  const removeTags = db.prepare('DELETE FROM contact_tags WHERE serial = ?')
  const count = db.prepare('SELECT count(*) AS count FROM contacts WHERE owner = ?')
  const conversation = db.prepare('SELECT 1 FROM conversations WHERE owner = ? AND contact_id = ? LIMIT 1')
  const byUid = db.prepare('SELECT 1 FROM contacts WHERE owner = ? AND uid = ?')
  const match = importMatcher(db)

  function create(row: ContactRow): void {
    const { serial } = insert.get(
      row.owner,
      row.id,
      row.uid,
      row.name,
      searchText(row),
      row.alias,
      row.email,
      row.phone,
      row.company,
      row.position,
      row.createdAt,
      row.updatedAt,
      JSON.stringify(row.tags),
      row.note,
      JSON.stringify(row.profile),
    ) as { serial: number }
    for (const tag of row.tags) addTag.run(row.owner, tag, serial)
  }

  function save(row: ContactRow): void {
    const { serial } = update.get(
      row.uid,
      row.name,
      searchText(row),
      row.alias,
      row.email,
      row.phone,
      row.company,
      row.position,
      row.updatedAt,
      JSON.stringify(row.tags),
      row.note,
      JSON.stringify(row.profile),
      row.owner,
      row.id,
    ) as { serial: number }
    removeTags.run(serial)
    for (const tag of row.tags) addTag.run(row.owner, tag, serial)
  }

  function checkRoom(owner: string, more: number, max: number): void {
    if ((count.get(owner)?.count as number) + more > max) throw contactsFull(max)
  }

  function freeUid(owner: string, uid: string | null): string | null {
    return uid === null || byUid.get(owner, uid) !== undefined ? null : uid
  }

  /** Creates or updates one contact as `ContactStore.importContacts` does. */
  function upsert(
    owner: string,
    entry: ContactImport,
    at: number,
    { keepName = false }: { keepName?: boolean } = {},
  ): ContactImportOutcome {
    const found = match(owner, entry)
    if (found === undefined) {
      const row = contactOfImport(owner, entry, at)
      create(row)
      return { outcome: 'created', id: row.id }
    }
    const merged = mergedContact(found, entry, keepName, freeUid(owner, entry.uid ?? null))
    if (JSON.stringify(merged) === JSON.stringify(found)) return { outcome: 'unchanged', id: found.id }
    save({ ...merged, updatedAt: at })
    return { outcome: 'updated', id: found.id }
  }

  const handlers: Handlers<ContactCommands> = {
    createContact({ row, max }) {
      if (reader.read(row.owner, row.id) !== undefined) {
        throw contactExists(row.id)
      }
      checkRoom(row.owner, 1, max)
      create(row)
      return null
    },
    updateContact({ owner, id, changes, at }) {
      const found = reader.read(owner, id)
      if (found === undefined) return null
      save({ ...found, ...changes, updatedAt: at })
      return reader.read(owner, id) ?? null
    },
    deleteContact({ owner, id }) {
      if (reader.read(owner, id) === undefined) return 'missing'
      if (conversation.get(owner, id) !== undefined) return 'has_conversations'
      remove.run(owner, id)
      return 'deleted'
    },
    importContacts({ owner, entries, at, max }) {
      const outcomes = entries.map((entry) => upsert(owner, entry, at))
      // Counted afterwards: only now it is known how many were created. If there are too many, none is kept.
      if (outcomes.some(({ outcome }) => outcome === 'created')) checkRoom(owner, 0, max)
      return outcomes
    },
  }
  return { handlers, upsert, checkRoom }
}

/** Finds the contact that an imported entry describes; see `ContactStore.importContacts`. */
function importMatcher(db: DatabaseSync) {
  const byId = db.prepare('SELECT * FROM contacts WHERE owner = ? AND id = ?')
  const byUid = db.prepare('SELECT * FROM contacts WHERE owner = ? AND uid = ?')
  const uidAgrees = '(uid IS NULL OR ?3 IS NULL OR uid = ?3)'
  const emailAgrees = '(email IS NULL OR ?4 IS NULL OR email = ?4 COLLATE NOCASE)'
  const phoneAgrees = '(phone IS NULL OR ?5 IS NULL OR phone = ?5)'
  const first = (condition: string, agrees: string) =>
    db.prepare(
      `SELECT * FROM (SELECT * FROM contacts WHERE owner = ?1 AND ${condition} ORDER BY serial LIMIT ${candidatesMax})
       WHERE ${agrees} ORDER BY serial LIMIT 1`,
    )
  const byEmail = first('email = ?2 COLLATE NOCASE', uidAgrees)
  const byNameAndPhone = first('name = ?2 AND phone = ?5', `${uidAgrees} AND ${emailAgrees}`)
  const byName = first('name = ?2', `${uidAgrees} AND ${emailAgrees} AND ${phoneAgrees}`)
  return (owner: string, entry: ContactImport): ContactRow | undefined => {
    const { id, uid = null, email = null, phone = null, name } = entry
    const row =
      (id === undefined ? undefined : byId.get(owner, id)) ??
      (uid === null ? undefined : (byUid.get(owner, uid) ?? byId.get(owner, uid))) ??
      (email === null ? undefined : byEmail.get(owner, email, uid)) ??
      (phone === null ? undefined : byNameAndPhone.get(owner, name, uid, email, phone)) ??
      byName.get(owner, name, uid, email, phone)
    return row === undefined ? undefined : toContact(row)
  }
}
