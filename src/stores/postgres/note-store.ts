// Notes of users, and the search in them. A note matches a word that it contains anywhere.

import type { NoteRow, NoteStore } from '../note-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'

/** More words do not make a search better, only slower. */
const wordsMax = 16

const columns: Columns<NoteRow> = { id: 'value', owner: 'value', text: 'value', createdAt: 'value' }
const toNote = rowReader<NoteRow>(columns)

export function noteStore({ read, write }: PartAccess): NoteStore {
  return {
    addNote: (note) =>
      write(async (db) => void (await insertRow(db, 'notes', columnsOf(columns, note), 'ON CONFLICT (id) DO NOTHING'))),
    searchNotes: (owner, query, limit) =>
      read(async (db) => {
        const words = wordsOf(query)
        const hits = ['0', ...words.map(() => 'CASE WHEN strpos(lower(text), lower(?)) > 0 THEN 1 ELSE 0 END')]
        const values: Value[] = [...words, owner, limit]
        const found = `SELECT *, ${hits.join(' + ')} AS hits FROM notes WHERE owner = ?`
        const condition = words.length === 0 ? '' : 'WHERE hits > 0'
        const sql = `SELECT * FROM (${found}) AS searched ${condition} ORDER BY hits DESC, position DESC LIMIT ?`
        return (await db.all(sql, ...values)).map(toNote)
      }),
  }
}

function wordsOf(query: string): string[] {
  const words = query.match(/[\p{L}\p{N}]+/gu) ?? []
  // A query without letters and digits ("??", but not "C++") is searched for as it is.
  const text = query.trim().replaceAll('\0', '')
  if (words.length === 0 && text !== '') return [text]
  return [...new Set(words)].slice(0, wordsMax)
}
