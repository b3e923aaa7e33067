// One page of a list: at most so many rows, and at most so many characters of text in
// them. The statement is stopped there, so that nothing beyond the page is read.

import type { StatementSync } from 'node:sqlite'
import type { RowPage } from '../row-page.ts'
import type { Row as StoredRow, Value } from './connection.ts'

/**
 * Characters of text in a page. A page holds one row at least, however large it is. Replies are built in memory, JSON
 * escapes can make them several times as long, and many may be built at once.
 */
const pageCharsMax = 4 * 1024 * 1024

/** `statement` takes `values` and, as its last one, how many rows it may give. */
export function readPage<Row>(
  statement: StatementSync,
  values: readonly Value[],
  limit: number,
  toRow: (row: StoredRow) => Row,
  charsMax = pageCharsMax,
): RowPage<Row> {
  const rows: Row[] = []
  let chars = 0
  // One row more than asked for tells whether there is more.
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
