// Reads a run's events page by page: first the folded rows of the journal table, then
// the tail. Bad data never makes it throw: lines that do not parse or no longer fit
// their schema, and missing rows, are counted as skipped.

import type { DatabaseSync } from 'node:sqlite'
import type { RunEvent } from '../../journal/event.ts'
import { decodeEvent } from '../../journal/event-codec.ts'
import type { EventPage } from '../../journal/event-pages.ts'
import type { JournalTails } from './journal-tails.ts'

/** In UTF-16 units, which is close enough to bytes. */
const pageCharsMax = 1024 * 1024

export function journalReader(db: DatabaseSync, tails: JournalTails) {
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
      yield { lastSeq, body: tailRow.get(refs[at] as number)?.body }
    }
    // The writer may have folded events whose commit this thread has not heard of yet. A reader who already saw the change of
    // the run's row must also find the events that caused it.
    if (refs.length > 0) {
      for (const row of rowsAfter.iterate(runId, reached)) yield { lastSeq: row.last_seq as number, body: row.body }
    }
  }

  return {
    read(runId: string, afterSeq: number, limit: number): EventPage {
      const events: RunEvent[] = []
      let skipped = 0
      let chars = 0
      let nextAfter = afterSeq
      const full = () => events.length >= limit || (events.length > 0 && chars > pageCharsMax)
      chunks: for (const { lastSeq, body } of chunksAfter(runId, afterSeq)) {
        for (const line of linesOf(body)) {
          const event = decodeEvent(line)
          if (event === null || event.seq <= nextAfter || event.seq > lastSeq) continue
          chars += line.length
          if (full()) break chunks
          skipped += event.seq - nextAfter - 1
          events.push(event)
          nextAfter = event.seq
        }
        skipped += lastSeq - nextAfter
        nextAfter = lastSeq
        // Before the next row is read: rows can be long.
        if (full()) break
      }
      const lastSeq = Math.max(tails.lastSeq(runId), Number(lastFolded.get(runId)?.seq ?? 0))
      return { events, skipped, nextAfter, atHead: nextAfter >= lastSeq }
    },
  }
}

function linesOf(body: unknown): string[] {
  return typeof body === 'string' ? body.split('\n') : []
}
