// The journal table. An append is one row with all its events, one JSON text a line.

import { AppError } from '../../errors/app-error.ts'
import type { RunEvent } from '../../journal/event.ts'
import { encodeEvent } from '../../journal/event-codec.ts'
import type { EventPage } from '../../journal/event-pages.ts'
import { EventPageBuilder } from '../../journal/event-page-builder.ts'
import type { Db } from './connection.ts'

/** A reader loads whole rows, and a page of events has about this many characters. */
const rowCharsMax = 1024 * 1024

/** How many rows one query of a page loads. */
const rowsPerQuery = 64

export type JournalRow = { firstSeq: number; lastSeq: number; body: string }

/** The rows for events that are numbered from `afterSeq + 1`; throws if they are not. */
export function journalRows(runId: string, afterSeq: number, events: readonly RunEvent[]): JournalRow[] {
  const rows: JournalRow[] = []
  let row: JournalRow | undefined
  for (const [index, event] of events.entries()) {
    if (event.seq !== afterSeq + 1 + index) {
      throw new AppError('event_invalid', `The events are not numbered from ${afterSeq + 1} on.`, {
        details: { runId, afterSeq, found: event.seq },
      })
    }
    const line = encodeEvent(event)
    if (row === undefined || row.body.length + line.length > rowCharsMax) {
      row = { firstSeq: event.seq, lastSeq: event.seq, body: line }
      rows.push(row)
    } else {
      row.body += `\n${line}`
      row.lastSeq = event.seq
    }
  }
  return rows
}

export async function insertJournal(db: Db, runId: string, rows: readonly JournalRow[]): Promise<void> {
  for (const { firstSeq, lastSeq, body } of rows) {
    await db.run(
      'INSERT INTO journal (run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?)',
      runId,
      firstSeq,
      lastSeq,
      body,
    )
  }
}

export async function readEvents(db: Db, runId: string, afterSeq: number, limit: number): Promise<EventPage> {
  const builder = new EventPageBuilder(afterSeq, limit)
  let reached = afterSeq

  // Read before the rows: all rows up to this seq are committed.
  const lastSeq = Number((await db.get('SELECT last_seq FROM runs WHERE id = ?', runId))?.['last_seq'] ?? 0)
  reading: while (reached < lastSeq) {
    const rows = await db.all(
      `SELECT last_seq, body FROM (
         SELECT last_seq, body, sum(octet_length(body)) OVER (ORDER BY last_seq) AS bytes, row_number() OVER (ORDER BY last_seq) AS place
         FROM (SELECT last_seq, body FROM journal WHERE run_id = ? AND last_seq > ? ORDER BY last_seq LIMIT ${rowsPerQuery}) AS next
       ) AS page WHERE bytes <= ${2 * rowCharsMax} OR place = 1 ORDER BY last_seq`,
      runId,
      reached,
    )
    if (rows.length === 0) {
      builder.skipTo(lastSeq)
      break
    }
    for (const row of rows) {
      reached = row['last_seq'] as number
      if (!builder.add(row['body'], reached)) break reading
    }
  }
  return builder.page(lastSeq)
}
