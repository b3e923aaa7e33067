// The tables that a copy from one database to another takes over, in an order in which every row
// comes after the rows that it refers to. The databases give the columns; only what differs
// between them is said here.

/** A row as a copy carries it. Columns with JSON are text. */
export type CopyRow = Record<string, string | number | Uint8Array | null>

export type CopyTable = {
  readonly name: string
  /** Columns that mean something only in their own database. Stores fill them with what an idle database has. */
  readonly without?: readonly string[]
  /**
   * The rows with the same `key` are pieces of one long value in `body`, in the order of `order`. How it is cut into pieces is up
   * to each database, so a copy compares the whole.
   */
  readonly pieces?: { readonly key: string; readonly order: string; readonly body: string }
}

export const copiedTables: readonly CopyTable[] = [
  { name: 'conversations' },
  { name: 'conversation_names' },
  // No node of the source works for the target.
  { name: 'runs', without: ['lease_owner', 'lease_until', 'slot'] },
  { name: 'journal', without: ['position'], pieces: { key: 'run_id', order: 'last_seq', body: 'body' } },
  { name: 'messages' },
  { name: 'interactions' },
  { name: 'idempotency_keys' },
  { name: 'blobs' },
  { name: 'notes' },
  { name: 'api_keys' },
  { name: 'feedback' },
  { name: 'comparisons' },
  { name: 'file_versions' },
  { name: 'todo_lists' },
  { name: 'snapshots' },
  { name: 'contacts' },
  { name: 'contact_tags' },
  { name: 'contact_facts' },
  { name: 'contact_todos' },
  { name: 'contact_events' },
  { name: 'conversation_archives' },
  { name: 'usage_days' },
  // PostgreSQL keeps the sums in shards.
  { name: 'usage_totals', without: ['shard'] },
  { name: 'usage_conversations' },
  // SQLite remembers when a content was last put, to find incomplete ones.
  { name: 'file_contents', without: ['put_at'] },
  { name: 'file_chunks', without: ['id'], pieces: { key: 'content', order: 'number', body: 'bytes' } },
  { name: 'files' },
  { name: 'file_references' },
]

/**
 * Tables that are not copied: what describes the database itself, counts that are computed again, and the feed, whose readers
 * begin again at another database.
 */
export const tablesLeftOut: readonly string[] = [
  'migrations',
  'store_state',
  'store_checks',
  'run_counts',
  'nodes',
  'slots',
  'duties',
  'rate_windows',
  'database_starts',
  'feed',
  'feed_state',
  'unfinished_copies',
  // Read together with `journal`.
  'journal_tail',
]
