// One page of a list, as every part of the store returns it.

/** `more`: rows follow after this page. They were left out because of the limit, or because the page has enough text. */
export type RowPage<Row> = { rows: Row[]; more: boolean }
