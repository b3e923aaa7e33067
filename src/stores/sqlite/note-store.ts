// Notes of users, and the search in them. Any query text is allowed: it is cut into
// words here and reaches the full-text index only as quoted phrases.

import type { DatabaseSync } from 'node:sqlite'
import type { NoteRow, NoteStore } from '../note-store.ts'
import type { Handlers, NoteCommands } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'

/** A trigram index cannot find words that are shorter. */
const indexedCharsMin = 3

/** More words do not make a search better, only slower. */
const wordsMax = 16

function toNote(row: Row): NoteRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    text: row.text as string,
    createdAt: row.created_at as number,
  }
}

export function noteStore({ db, read, write }: PartAccess): NoteStore {
  const reader = noteReader(db)
  return {
    addNote: async (note) => void (await write('addNote', note)),
    searchNotes: (owner, query, limit) => read(() => reader.search(owner, query, limit)),
  }
}

function noteReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const newest = db.prepare('SELECT * FROM notes WHERE owner = ? ORDER BY position DESC LIMIT ?')

  return {
    search(owner: string, query: string, limit: number): NoteRow[] {
      const words = wordsOf(query)
      if (words.length === 0) return newest.all(owner, limit).map(toNote)
      const hits: string[] = []
      const values: Value[] = []
      for (const word of words) {
        if (word.length >= indexedCharsMin) {
          hits.push('(position IN (SELECT rowid FROM notes_text WHERE notes_text MATCH ?))')
          values.push(`"${word.replaceAll('"', '""')}"`)
        } else {
          hits.push(`(text LIKE ? ESCAPE '\\')`)
          values.push(`%${word.replace(/[\\%_]/g, (sign) => `\\${sign}`)}%`)
        }
      }
      const sql = `SELECT *, ${hits.join(' + ')} AS hits FROM notes WHERE owner = ? AND hits > 0 ORDER BY hits DESC, position DESC LIMIT ?`
      return statement(sql)
        .all(...values, owner, limit)
        .map(toNote)
    },
  }
}

function wordsOf(query: string): string[] {
  const words = query.match(/[\p{L}\p{N}]+/gu) ?? []
  // A query without letters and digits ("??", but not "C++") is searched for as it is.
  const text = query.trim().replaceAll('\0', '')
  if (words.length === 0 && text !== '') return [text]
  // Sorted by length, so that few different SQL texts arise and the statement cache stays small.
  return [...new Set(words)].slice(0, wordsMax).sort((a, b) => b.length - a.length)
}

export function noteHandlers(db: DatabaseSync): Handlers<NoteCommands> {
  const insert = db.prepare(
    'INSERT INTO notes (id, owner, text, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
  )
  return {
    addNote(note) {
      insert.run(note.id, note.owner, note.text, note.createdAt)
      return null
    },
  }
}
