// One page of a list, as every part of the store returns it.

/** `more`: rows follow after this page. They were left out because of the limit, or because the page has enough text. */
export type RowPage<Row> = { rows: Row[]; more: boolean }

/** A page of a list with page numbers. `total` counts the rows of all pages. */
export type CountedPage<Row> = RowPage<Row> & { total: number }
