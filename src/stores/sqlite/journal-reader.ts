// Reads a run's events page by page: first the folded rows of the journal table, then
// the tail.

import type { DatabaseSync } from 'node:sqlite'
import type { EventPage } from '../../journal/event-pages.ts'
import { EventPageBuilder } from '../../journal/event-page-builder.ts'
import type { JournalTails } from './journal-tails.ts'

/** `loggedBody`: the text of a tail row that the database does not have yet. */
export function journalReader(
  db: DatabaseSync,
  tails: JournalTails,
  loggedBody: (tailId: number) => string | undefined,
) {
  const rowsAfter = db.prepare('SELECT last_seq, body FROM journal WHERE run_id = ? AND last_seq > ? ORDER BY last_seq')
  const lastFolded = db.prepare('SELECT max(last_seq) AS seq FROM journal WHERE run_id = ?')
  const tailRow = db.prepare('SELECT body FROM journal_tail WHERE id = ?')

  /** `body` is undefined if the row is missing. */
  function* chunksAfter(runId: string, afterSeq: number): Generator<{ lastSeq: number; body: unknown }> {
    let reached = afterSeq
    // A reader near the head finds everything in the tail and skips the journal table.
    const refs = tails.refs(runId)
    if (refs.length === 0 || (refs[1] as number) > afterSeq + 1) {
      for (const row of rowsAfter.iterate(runId, afterSeq)) {
        reached = row.last_seq as number
        yield { lastSeq: reached, body: row.body }
      }
    }
    for (let at = 0; at < refs.length; at += 3) {
      const lastSeq = refs[at + 2] as number
      if (lastSeq <= reached) continue
      reached = lastSeq
      const id = refs[at] as number
      yield { lastSeq, body: loggedBody(id) ?? tailRow.get(id)?.body }
    }
    // The writer may have folded events whose commit this thread has not heard of yet. A reader who already saw the change of
    // the run's row must also find the events that caused it.
    if (refs.length > 0) {
      for (const row of rowsAfter.iterate(runId, reached)) yield { lastSeq: row.last_seq as number, body: row.body }
    }
  }

  return {
    read(runId: string, afterSeq: number, limit: number): EventPage {
      const builder = new EventPageBuilder(afterSeq, limit)
      for (const { lastSeq, body } of chunksAfter(runId, afterSeq)) if (!builder.add(body, lastSeq)) break
      const lastSeq = Math.max(tails.lastSeq(runId), Number(lastFolded.get(runId)?.seq ?? 0))
      return builder.page(lastSeq)
    },
  }
}
