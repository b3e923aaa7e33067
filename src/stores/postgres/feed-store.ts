// The feed of a user. Triggers write its rows (see the migration); this file reads and expires
// them.
//
// Transactions commit in any order, so neither a sequence nor a time says what a reader may
// have missed. Each row has the id of the transaction that wrote it. A row is settled if all
// transactions with a lower id have ended, too: then no row can appear before it. Readers
// resume only after settled rows, and get the others early.

import type { FeedEntry, FeedKind, FeedPage, FeedPosition, FeedRequest, FeedRows, FeedStore } from '../feed-store.ts'
import { feedInputCharsMax, feedPromptCharsMax, unsettledMax } from '../feed-store.ts'
import { toComparisonRow } from './comparison-store.ts'
import type { Db, Row } from './connection.ts'
import { toConversationRow } from './conversation-store.ts'
import { toInteractionRow } from './interaction-store.ts'
import type { PartAccess } from './part-access.ts'
import { toRunRow } from './run-rows.ts'

/** All transactions below `open` have ended; none has an id of `unused` or higher. */
const transactions = `
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS open,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS unused`

/** One statement, so that the rows, the floor and the open transactions are of the same moment. */
const page = `
  SELECT now.open, now.unused, state.floor_txid, state.floor_number, entry.kind, entry.subject, entry.txid, entry.number
  FROM (${transactions}) AS now CROSS JOIN feed_state AS state LEFT JOIN LATERAL (
    SELECT kind, subject, txid, number FROM feed
    WHERE owner = ? AND (txid, number) > (?, ?) ORDER BY txid, number LIMIT ?
  ) AS entry ON true
  ORDER BY entry.txid, entry.number`

const rowsOf: { [Kind in FeedKind]: { sql: string; toRow: (row: Row) => FeedRows[Kind] } } = {
  conversation: { sql: 'SELECT * FROM conversations WHERE id = ANY (?)', toRow: toConversationRow },
  run: { sql: 'SELECT * FROM runs WHERE id = ANY (?)', toRow: toRunRow },
  interaction: {
    sql: `SELECT id, number, run_id, owner, conversation_id, kind, call_id, tool_name, left(prompt, ${feedPromptCharsMax}) AS prompt,
        CASE WHEN length(input) <= ${feedInputCharsMax} THEN input END AS input, outcome, status, reason, decided_by,
        decided_at, executed_at, deadline_at, at_deadline, reply_key, reply_fingerprint, created_at, updated_at
      FROM interactions WHERE id = ANY (?)`,
    toRow: toInteractionRow,
  },
  comparison: { sql: 'SELECT * FROM comparisons WHERE id = ANY (?)', toRow: toComparisonRow },
}

type Change = { kind: FeedKind; id: string; position: FeedPosition; settled: boolean }

export function feedStore({ read, write }: PartAccess): FeedStore {
  return {
    feedState: () =>
      read(async (db) => {
        const row = await db.get(
          `SELECT state.epoch, now.open FROM feed_state AS state CROSS JOIN (${transactions}) AS now`,
        )
        return { epoch: String(row?.['epoch']), head: headBefore(row?.['open'] as number) }
      }),
    readFeed: (owner, request) => read((db) => readPage(db, owner, request)),
    expireFeed: (keep, limit) => write((db) => expire(db, keep, limit)),
  }
}

/** The position after all entries of transactions below `open`. */
function headBefore(open: number): FeedPosition {
  return { commit: open - 1, number: Number.MAX_SAFE_INTEGER }
}

function isBefore(one: FeedPosition, other: FeedPosition): boolean {
  return one.commit === other.commit ? one.number < other.number : one.commit < other.commit
}

async function readPage(db: Db, owner: string, { after, limit, sent }: FeedRequest): Promise<FeedPage | null> {
  const stored = await db.all(page, owner, after.commit, after.number, limit + unsettledMax)
  const [first] = stored
  if (first === undefined) return null
  const open = first['open'] as number
  const floor = { commit: first['floor_txid'] as number, number: first['floor_number'] as number }
  if (isBefore(after, floor) || after.commit >= (first['unused'] as number)) return null

  const changes: Change[] = stored.flatMap((row) =>
    row['txid'] === null
      ? []
      : {
          kind: row['kind'] as FeedKind,
          id: row['subject'] as string,
          position: { commit: row['txid'] as number, number: row['number'] as number },
          settled: (row['txid'] as number) < open,
        },
  )
  const settled = changes.filter((change) => change.settled)
  const more = settled.length > limit
  const taken = more ? settled.slice(0, limit) : changes
  const last = taken.findLast((change) => change.settled)?.position ?? after
  const head = headBefore(open)
  return {
    entries: await withRows(
      db,
      taken.filter(({ position }) => sent?.has(position.number) !== true),
    ),
    more,
    next: more || isBefore(head, last) ? last : head,
  }
}

async function withRows(db: Db, changes: Change[]): Promise<FeedEntry[]> {
  const found = new Map<string, FeedEntry['row']>()
  for (const kind of ['conversation', 'run', 'interaction', 'comparison'] as const) {
    const ids = changes.filter((change) => change.kind === kind).map(({ id }) => id)
    if (ids.length === 0) continue
    const { sql, toRow } = rowsOf[kind]
    for (const row of await db.all(sql, ids)) found.set(`${kind} ${row['id'] as string}`, toRow(row))
  }
  return changes.map((change) => ({ ...change, row: found.get(`${change.kind} ${change.id}`) ?? null }) as FeedEntry)
}

async function expire(db: Db, keep: number, limit: number): Promise<number> {
  const removed = await db.all(
    `DELETE FROM feed WHERE number = ANY (ARRAY(
       SELECT number FROM feed WHERE number <= (SELECT last_value FROM feed_number) - ?::bigint
       ORDER BY number LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING txid, number`,
    keep,
    limit,
  )
  let floor = { commit: 0, number: 0 }
  for (const row of removed) {
    const position = { commit: row['txid'] as number, number: row['number'] as number }
    if (isBefore(floor, position)) floor = position
  }
  if (removed.length > 0) {
    await db.run(
      `UPDATE feed_state SET floor_txid = ?, floor_number = ? WHERE (floor_txid, floor_number) < (?::bigint, ?::bigint)`,
      floor.commit,
      floor.number,
      floor.commit,
      floor.number,
    )
  }
  return removed.length
}

const newEpoch = '(random() * 281474976710656)::bigint'

/**
 * Gives the database its epoch. Empties the feed if its transactions are those of another database server, from which a dump
 * was restored: their ids mean nothing here, and readers with cursors of it have to begin again.
 */
export async function startFeed(db: Db): Promise<void> {
  const foreign = `SELECT 1 AS found FROM (SELECT txid FROM feed ORDER BY number DESC LIMIT 1) AS newest, (${transactions}) AS now
    WHERE newest.txid >= now.unused`
  if ((await db.get('SELECT epoch FROM feed_state')) === undefined) {
    await db.run(
      `INSERT INTO feed_state (epoch, floor_txid, floor_number) VALUES (${newEpoch}, 0, 0) ON CONFLICT (id) DO NOTHING`,
    )
  }
  if ((await db.get(foreign)) === undefined) return
  // Other nodes wait here, and find the feed empty.
  await db.get('SELECT epoch FROM feed_state FOR UPDATE')
  if ((await db.get(foreign)) === undefined) return
  await db.run('DELETE FROM feed')
  await db.run(`UPDATE feed_state SET epoch = ${newEpoch}, floor_txid = 0, floor_number = 0`)
}
