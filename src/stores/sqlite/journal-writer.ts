// The writer's side of the journal. The appends of a run in one transaction become one
// row at the end of the tail table, which all runs share. From time to time, and when the
// lease on a run is released, the run's tail events are folded (compacted) into one row of
// the journal table, and their tail rows are deleted later. So an append updates no index,
// and a read touches few pages. Events that are folded in the transaction that adds them
// get no row in the tail table.
//
// What must stay true at every commit: every event is in `journal`, or both in
// `journal_tail` and in the run's cached tail. So after a crash the two tables hold every
// event. `writeTails` must therefore come before each commit.

import type { DatabaseSync } from 'node:sqlite'
import type { EncodedEvents, MergedRows } from './commands.ts'
import type { CachedRun, RunCache } from './run-cache.ts'

/** A run's tail is folded when it reaches this many rows … */
const tailRowsMax = 64

/** … or this many characters. The writer keeps at most this much in memory for each open run. */
const tailCharsMax = 16 * 1024

/** A longer body is stored as several rows, cut between events: a reader loads whole rows, and a page of it is 1 MiB. */
const rowCharsMax = 1024 * 1024

/** How many ids a tail row may lag behind the newest one. Bounds the rows that recovery has to read after a crash. */
const tailSpanMax = 20_000

/** The tail is swept once per this many new ids. */
const sweepEvery = 4096

export type JournalWriter = ReturnType<typeof journalWriter>

export function journalWriter(db: DatabaseSync, cache: RunCache, folded: [runId: string, lastSeq: number][]) {
  const insertTail = db.prepare(
    'INSERT INTO journal_tail (id, run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?, ?)',
  )
  const insertRow = db.prepare(insertFolded)
  const setLastSeq = db.prepare('UPDATE runs SET last_seq = ? WHERE id = ?')
  const deleteRows = db.prepare('DELETE FROM journal WHERE run_id = ?')
  const deleteTail = db.prepare('DELETE FROM journal_tail WHERE id < ?')
  let newestId = 0
  let sweptAt = 0
  /** Tail rows with lower ids were folded before the current batch, so the main thread no longer reads them. */
  let deletableBelow = 0
  /** The lowest id of the rows that were folded in the current transaction. The main thread may still read them. */
  let foldedNow = Number.POSITIVE_INFINITY

  /** The caller must have checked the seqs and called `cache.remember` or `cache.add` before. */
  function insert(runId: string, entry: CachedRun, { id, lastSeq, body }: EncodedEvents): void {
    // A long body gets a journal row of its own, because appending it to the cached tail would copy it.
    if (body.length > tailCharsMax) fold(runId, entry)
    newestId = Math.max(newestId, id)
    if (entry.unwrittenAppends === 0) {
      entry.unwritten = body
      entry.unwrittenId = id
      entry.unwrittenSeq = entry.lastSeq + 1
    } else entry.unwritten += `\n${body}`
    entry.unwrittenAppends += 1
    entry.lastSeq = lastSeq
    if (entry.tail.length + entry.unwritten.length > tailCharsMax) fold(runId, entry)
  }

  /** Writes the rows of the tail table for the events of this transaction. Returns those rows that hold several appends. */
  function writeTails(): MergedRows {
    const merged: MergedRows = []
    for (const { runId, entry } of cache.changed()) {
      if (entry.unwrittenAppends === 0) continue
      if (entry.tailRows + 1 >= tailRowsMax) {
        fold(runId, entry)
        continue
      }
      const { unwritten, unwrittenAppends, unwrittenId, unwrittenSeq, lastSeq } = entry
      insertTail.run(unwrittenId, runId, unwrittenSeq, lastSeq, unwritten)
      if (unwrittenAppends > 1) merged.push(runId, unwrittenId, unwrittenSeq, lastSeq)
      // A rollback undoes this too, because the entry was saved before it was changed, and no savepoint is open now.
      entry.tail = unfoldedText(entry)
      if (entry.tailRows === 0) entry.tailId = unwrittenId
      entry.tailRows += 1
      dropUnwritten(entry)
    }
    return merged
  }

  /** Moves the events that are not folded into the journal table, and brings `last_seq` of the run's row up to date. */
  function fold(runId: string, entry: CachedRun): void {
    if (foldEvents(runId, entry)) setLastSeq.run(entry.lastSeq, runId)
  }

  /** The same, but the caller writes `last_seq`. False if all events were folded before. */
  function foldEvents(runId: string, entry: CachedRun): boolean {
    if (entry.tailRows === 0 && entry.unwrittenAppends === 0) return false
    insertRows(runId, entry.foldedSeq + 1, entry.lastSeq, unfoldedText(entry))
    if (entry.tailRows > 0) foldedNow = Math.min(foldedNow, entry.tailId)
    cache.remember(runId, entry)
    entry.foldedSeq = entry.lastSeq
    entry.tail = ''
    entry.tailRows = 0
    dropUnwritten(entry)
    folded.push([runId, entry.lastSeq])
    return true
  }

  /** The seqs are consecutive, one for each line of the body. */
  function insertRows(runId: string, firstSeq: number, lastSeq: number, body: string): void {
    let seq = firstSeq
    let start = 0
    while (body.length - start > rowCharsMax) {
      // At least one event, and no more than fit.
      let end = body.lastIndexOf('\n', start + rowCharsMax)
      if (end <= start) end = body.indexOf('\n', start + rowCharsMax)
      if (end === -1) break
      const row = body.slice(start, end)
      const rowLastSeq = seq + linesIn(row) - 1
      insertRow.run(runId, seq, rowLastSeq, row)
      seq = rowLastSeq + 1
      start = end + 1
    }
    insertRow.run(runId, seq, lastSeq, start === 0 ? body : body.slice(start))
  }

  /**
   * Call at the end of each transaction. Every `sweepEvery` ids: folds runs that had no recent append, and deletes tail rows that
   * were folded before.
   */
  function sweep(): void {
    if (newestId - sweptAt >= sweepEvery) {
      sweptAt = newestId
      // Deltas may overtake other commands, so a row may be newer than rows with higher ids.
      let lowest = foldedNow
      for (const [, { tailRows, tailId }] of cache.entries()) if (tailRows > 0) lowest = Math.min(lowest, tailId)
      deleteTail.run(Math.min(deletableBelow, lowest))
      deletableBelow = newestId + 1
      for (const [runId, entry] of cache.entries()) {
        if (entry.tailRows === 0) continue
        if (entry.tailId < newestId - tailSpanMax) fold(runId, entry)
        else deletableBelow = Math.min(deletableBelow, entry.tailId)
      }
    }
    foldedNow = Number.POSITIVE_INFINITY
  }

  /** The batch was rolled back, and perhaps a sweep with it: no tail row counts as deletable until the next sweep. */
  function rolledBack(): void {
    deletableBelow = 0
    foldedNow = Number.POSITIVE_INFINITY
  }

  /** Folds all runs and empties the tail, before the database is closed. */
  function foldAll(): void {
    for (const [runId, entry] of cache.entries()) fold(runId, entry)
    deleteTail.run(newestId + 1)
  }

  /** Deletes all events of an ended run. Ending a run folds its tail, so they are all in the journal table. */
  function remove(runId: string): void {
    deleteRows.run(runId)
  }

  return { insert, writeTails, fold, foldEvents, sweep, rolledBack, foldAll, remove }
}

/** The events after `foldedSeq`, one per line. */
function unfoldedText({ tail, tailRows, unwritten, unwrittenAppends }: CachedRun): string {
  if (tailRows === 0) return unwritten
  return unwrittenAppends === 0 ? tail : `${tail}\n${unwritten}`
}

function dropUnwritten(entry: CachedRun): void {
  entry.unwritten = ''
  entry.unwrittenAppends = 0
}

function linesIn(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

const insertFolded = 'INSERT INTO journal (run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?)'

/** Recovery after a crash: folds the events of the tail, corrects `last_seq` of the runs, and empties the tail. Call inside a transaction. */
export function recoverJournal(db: DatabaseSync): void {
  const rows = db.prepare('SELECT run_id, first_seq, last_seq, body FROM journal_tail ORDER BY id')
  const lastFolded = db.prepare('SELECT max(last_seq) AS seq FROM journal WHERE run_id = ?')
  const knownRun = db.prepare('SELECT 1 FROM runs WHERE id = ?')
  const unfolded = new Map<string, { firstSeq: number; lastSeq: number; bodies: string[] }>()
  for (const row of rows.iterate()) {
    const runId = row.run_id as string
    let run = unfolded.get(runId)
    if (run === undefined) {
      // Tail rows are deleted late, so their run may have been removed already.
      if (knownRun.get(runId) === undefined) continue
      const seq = Number(lastFolded.get(runId)?.seq ?? 0)
      run = { firstSeq: seq + 1, lastSeq: seq, bodies: [] }
      unfolded.set(runId, run)
    }
    if ((row.last_seq as number) <= run.lastSeq) continue
    run.bodies.push(String(row.body))
    run.lastSeq = row.last_seq as number
  }
  const insertRow = db.prepare(insertFolded)
  const setLastSeq = db.prepare('UPDATE runs SET last_seq = ? WHERE id = ?')
  for (const [runId, { firstSeq, lastSeq, bodies }] of unfolded) {
    if (bodies.length === 0) continue
    insertRow.run(runId, firstSeq, lastSeq, bodies.join('\n'))
    setLastSeq.run(lastSeq, runId)
  }
  db.exec('DELETE FROM journal_tail')
}
