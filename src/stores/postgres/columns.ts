// Rows of the database ↔ rows of the store. A field `createdAt` is the column `created_at`; a
// field that holds JSON is text in its column, and a flag is 0 or 1.

import type { Db, Row, Value } from './connection.ts'
import { fromJson, toJson } from './json-column.ts'

type FieldKind = 'value' | 'json' | 'flag'

/** The fields of a row, and how each is stored. */
export type Columns<Fields> = { readonly [Name in keyof Fields]-?: FieldKind }

const columnNames = new Map<string, string>()

export function columnOf(field: string): string {
  let name = columnNames.get(field)
  if (name === undefined) {
    name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    columnNames.set(field, name)
  }
  return name
}

/** JSON that no longer parses counts as null; `defaults` has the values that stand in for it. */
export function rowReader<Fields>(columns: Columns<Fields>, defaults: Partial<Fields> = {}): (row: Row) => Fields {
  const fields = Object.entries(columns) as [string, FieldKind][]
  return (row) => {
    const result: Record<string, unknown> = {}
    for (const [field, kind] of fields) {
      const stored = row[columnOf(field)] ?? null
      const value = kind === 'json' ? fromJson(stored) : kind === 'flag' ? stored === 1 : stored
      result[field] = value ?? (defaults as Record<string, unknown>)[field] ?? null
    }
    return result as Fields
  }
}

/** The columns of a row, for `insertRow`. A JSON field that is null is NULL. */
export function columnsOf<Fields extends object>(columns: Columns<Fields>, row: Fields): Record<string, Value> {
  const stored: Record<string, Value> = {}
  for (const [field, kind] of Object.entries(columns) as [keyof Fields & string, FieldKind][]) {
    const value = row[field]
    stored[columnOf(field)] = kind === 'json' ? toJson(value) : kind === 'flag' ? (value ? 1 : 0) : (value as Value)
  }
  return stored
}

/** `tail` follows the values, for example `ON CONFLICT … DO NOTHING` or `RETURNING …`. */
export async function insertRow(db: Db, table: string, columns: Record<string, Value>, tail = ''): Promise<Row[]> {
  const names = Object.keys(columns)
  const marks = names.map(() => '?').join(', ')
  const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks}) ${tail}`
  return await db.all(sql, ...Object.values(columns))
}
