// Reads one page of a list, bounded by a number of rows and by the bytes of text in them. The
// bytes are summed in the database, so rows beyond the page are not sent.

import type { RowPage } from '../row-page.ts'
import type { Db, Row as StoredRow, Value } from './connection.ts'

/** Maximum bytes of text in a page; a page always holds at least one row, however large. */
const pageBytesMax = 4 * 1024 * 1024

export type PageQuery = {
  /** Without its LIMIT. */
  sql: string
  values: readonly Value[]
  limit: number
  offset?: number
  /** The columns that may be long. */
  long: readonly string[]
}

export async function readPage<Row>(
  db: Db,
  { sql, values, limit, offset = 0, long }: PageQuery,
  toRow: (row: StoredRow) => Row,
): Promise<RowPage<Row>> {
  const bytes = ['0', ...long.map((column) => `coalesce(octet_length(${column}), 0)`)].join(' + ')
  const stored = await db.all(
    `SELECT * FROM (
       SELECT *, row_number() OVER () AS page_row, count(*) OVER () AS page_rows,
         sum(${bytes}) OVER (ROWS UNBOUNDED PRECEDING) AS page_bytes
       FROM (${sql} LIMIT ? OFFSET ?) AS wanted
     ) AS page WHERE page_row <= ? AND (page_bytes <= ${pageBytesMax} OR page_row = 1) ORDER BY page_row`,
    ...values,
    // One extra row, to learn whether more rows follow.
    limit + 1,
    offset,
    limit,
  )
  return { rows: stored.map(toRow), more: Number(stored[0]?.['page_rows'] ?? 0) > stored.length }
}
