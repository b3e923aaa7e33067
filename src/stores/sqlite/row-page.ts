// Reads one page of a list, bounded by a number of rows and by the characters of text
// in them. The statement is stopped at the bound, so rows beyond the page are not read.

import type { StatementSync } from 'node:sqlite'
import type { RowPage } from '../row-page.ts'
import type { Row as StoredRow, Value } from './connection.ts'

/**
 * Maximum characters of text in a page; a page always holds at least one row, however large. The bound exists because
 * replies are built in memory, JSON escapes can multiply their length, and many may be built at once.
 */
const pageCharsMax = 4 * 1024 * 1024

/** `statement` takes `values` as its parameters, and the row limit as the last one. */
export function readPage<Row>(
  statement: StatementSync,
  values: readonly Value[],
  limit: number,
  toRow: (row: StoredRow) => Row,
  charsMax = pageCharsMax,
): RowPage<Row> {
  const rows: Row[] = []
  let chars = 0
  // Asks for one extra row to learn whether more rows follow.
  for (const stored of statement.iterate(...values, limit + 1)) {
    if (rows.length >= limit) return { rows, more: true }
    chars += charsOf(stored)
    if (chars > charsMax && rows.length > 0) return { rows, more: true }
    rows.push(toRow(stored))
  }
  return { rows, more: false }
}

function charsOf(row: StoredRow): number {
  let chars = 0
  for (const value of Object.values(row)) if (typeof value === 'string') chars += value.length
  return chars
}
