// Any rows that a database file may hold, for every table that a copy takes over. The columns and
// references are read from the file, so a new column is covered without a change here.

import type { DatabaseSync } from 'node:sqlite'
import { copiedTables } from '../../src/stores/copy-tables.ts'
import type { Random } from '../support/random.ts'

type Value = string | number | null | Uint8Array
type Column = { name: string; type: string; notnull: number; pk: number }
type Reference = { id: number; table: string; from: string; to: string }

const statuses = ['queued', 'running', 'waiting_user', 'succeeded', 'failed', 'canceled']
/** U+0000 and U+FDD0 are special in text of PostgreSQL. */
const texts = ['', 'plain', 'two\nlines', '\0', '\uFDD0', '\uFDD00\0', '{"a":"\\u0000"}', '日本語 🙂', 'quote \' " \\']
const chunkBytes = 192 * 1024
const fileSizes = [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 600_000]

export function fillWithAnything(db: DatabaseSync, random: Random): void {
  let count = 0
  const { pick } = random
  const below = (limit: number) => random.between(0, limit - 1)
  const next = () => (count += 1 + below(3))
  const text = () => `${next()} ${pick(texts)}`

  function value({ name, type, notnull, pk }: Column, table: string): Value {
    if (table === 'runs' && name === 'status') return pick(statuses)
    if (name === 'needs') return pick([null, JSON.stringify(['engine:a', 'mcp:b'])])
    if (name === 'slot' || name.startsWith('lease_')) return name === 'slot' ? 0 : null
    if (notnull === 0 && pk === 0 && below(3) === 0) return null
    return type === 'TEXT' ? text() : next()
  }

  /** Pieces of a journal: some rows are folded, the others are still in the tail, and some of both are there twice. */
  function journalOf(runId: string): void {
    let seq = 0
    const folded = below(4)
    for (let row = 0; row < folded + below(4); row += 1) {
      const lines = Array.from({ length: 1 + below(3) }, () => JSON.stringify({ text: text() }))
      const values = [runId, seq + 1, seq + lines.length, lines.join('\n')]
      seq += lines.length
      if (row < folded)
        db.prepare('INSERT INTO journal (run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?)').run(...values)
      if (row >= folded || below(2) === 0) {
        db.prepare('INSERT INTO journal_tail (run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?)').run(...values)
      }
      if (row < folded) db.prepare('UPDATE runs SET last_seq = ? WHERE id = ?').run(seq, runId)
    }
  }

  function chunksOf(content: number): void {
    const size = pick(fileSizes)
    const bytes = Buffer.alloc(size, next())
    for (let number = 0; number === 0 || number * chunkBytes < size; number += 1) {
      const chunk = bytes.subarray(number * chunkBytes, (number + 1) * chunkBytes)
      db.prepare('INSERT INTO file_chunks (content, number, bytes) VALUES (?, ?, ?)').run(content, number, chunk)
    }
  }

  db.exec('BEGIN')
  for (const { name: table } of copiedTables) {
    if (table === 'journal') for (const row of db.prepare('SELECT id FROM runs').all()) journalOf(row.id as string)
    else if (table === 'file_chunks') {
      for (const row of db.prepare('SELECT id FROM file_contents').all()) chunksOf(row.id as number)
    } else {
      const columns = db
        .prepare('SELECT name, type, "notnull", pk FROM pragma_table_info(?)')
        .all(table) as unknown as Column[]
      const references = db
        .prepare('SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?)')
        .all(table) as unknown as Reference[]
      for (let rows = below(5); rows > 0; rows -= 1) {
        const row: Record<string, Value> = {}
        for (const column of columns) row[column.name] = value(column, table)
        let isPossible = true
        for (const id of new Set(references.map((reference) => reference.id))) {
          const parts = references.filter((reference) => reference.id === id)
          const parents = db.prepare(`SELECT * FROM ${parts[0]?.table}`).all() as Record<string, Value>[]
          const isOptional = parts.every(({ from }) => columns.find(({ name }) => name === from)?.notnull === 0)
          const parent = parents.length === 0 || (isOptional && below(2) === 0) ? undefined : pick(parents)
          if (parent === undefined && !isOptional) isPossible = false
          for (const { from, to } of parts) row[from] = parent?.[to] ?? null
        }
        if (!isPossible) continue
        const names = Object.keys(row)
        db.prepare(
          `INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `:${name}`).join(', ')})`,
        ).run(row)
      }
    }
  }
  db.exec('COMMIT')
}
