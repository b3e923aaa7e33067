// The journal as the writer uses it. An append is one insert at the end of one
// table, whatever the run: the tail. Now and then, and when its writer gives the
// run up, the events of a run are folded into one row of the journal table; the
// tail rows go soon after. So writing costs no index and reading costs few pages.
//
// What must stay true: every event is in `journal`, or in `journal_tail` and in
// memory as the run's tail. After a crash the tail table alone says it all.

import type { DatabaseSync } from 'node:sqlite'
import type { JournalPart } from './commands.ts'
import type { CachedRun, RunCache } from './run-cache.ts'

/** A run's tail is folded when it has so many rows … */
const tailRowsMax = 64

/** … or so many characters. This times the number of open runs is what the writer keeps in memory. */
const tailCharsMax = 16 * 1024

/** How far a tail row may lie behind the newest: what opening has to look through after a crash. */
const tailSpanMax = 20_000

/** How often, in rows, the tail is swept. */
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
  /** Tail rows below this were folded before the batch in hand, so the main thread no longer reads them. */
  let deletableBelow = 0

  /** The caller has checked the numbers and called `cache.remember` or `cache.add`. */
  function insert(runId: string, entry: CachedRun, { id, lastSeq, body }: JournalPart, into: 'tail' | 'fold'): void {
    // A long body gets a row of its own: appended to the tail it would be copied.
    if (body.length > tailCharsMax) fold(runId, entry)
    const firstSeq = entry.lastSeq + 1
    newestId = id
    // What is folded at once needs no place in the tail.
    const full = entry.tailRows + 1 >= tailRowsMax || entry.tail.length + body.length > tailCharsMax
    if (into === 'tail' && !full) insertTail.run(id, runId, firstSeq, lastSeq, body)
    if (entry.tailRows === 0) {
      entry.tail = body
      entry.tailId = id
    } else entry.tail += `\n${body}`
    entry.tailRows += 1
    entry.lastSeq = lastSeq
    if (into === 'fold' || full) fold(runId, entry)
  }

  /** Afterwards the run's row, too, has the true last seq. */
  function fold(runId: string, entry: CachedRun): void {
    if (entry.tailRows === 0) return
    insertRow.run(runId, entry.foldedSeq + 1, entry.lastSeq, entry.tail)
    setLastSeq.run(entry.lastSeq, runId)
    cache.remember(runId, entry)
    entry.foldedSeq = entry.lastSeq
    entry.tail = ''
    entry.tailRows = 0
    folded.push([runId, entry.lastSeq])
  }

  /** Now and then: folds runs that have stood still, and removes from the tail what was folded. */
  function sweep(): void {
    if (newestId - sweptAt < sweepEvery) return
    sweptAt = newestId
    deleteTail.run(deletableBelow)
    deletableBelow = newestId + 1
    for (const [runId, entry] of cache.entries()) {
      if (entry.tailRows === 0) continue
      if (entry.tailId < newestId - tailSpanMax) fold(runId, entry)
      else deletableBelow = Math.min(deletableBelow, entry.tailId)
    }
  }

  /** What the last sweep found was rolled back. */
  function rolledBack(): void {
    deletableBelow = 0
  }

  /** Before closing. */
  function foldAll(): void {
    for (const [runId, entry] of cache.entries()) fold(runId, entry)
    deleteTail.run(newestId + 1)
  }

  /** All events of a run that has ended; they are all folded by then. */
  function remove(runId: string): void {
    deleteRows.run(runId)
  }

  return { insert, fold, sweep, rolledBack, foldAll, remove }
}

const insertFolded = 'INSERT INTO journal (run_id, first_seq, last_seq, body) VALUES (?, ?, ?, ?)'

/** After a crash: folds what the tail holds, corrects the last seq of the runs, and empties the tail. Runs in a transaction. */
export function recoverJournal(db: DatabaseSync): void {
  const rows = db.prepare('SELECT run_id, first_seq, last_seq, body FROM journal_tail ORDER BY id')
  const lastFolded = db.prepare('SELECT max(last_seq) AS seq FROM journal WHERE run_id = ?')
  const knownRun = db.prepare('SELECT 1 FROM runs WHERE id = ?')
  const unfolded = new Map<string, { firstSeq: number; lastSeq: number; bodies: string[] }>()
  for (const row of rows.iterate()) {
    const runId = row.run_id as string
    let run = unfolded.get(runId)
    if (run === undefined) {
      // Sweeping is lazy: the run may have been removed since.
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
