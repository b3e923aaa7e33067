// The writer's in-memory state of the runs it is writing: epoch and last seq, so that an
// append can be checked without a query, and the events that are not folded yet. The
// writer thread is the only writer, so the cache is always current; it must be rolled
// back together with the transaction.

/** What the cache takes from the row of a run. */
export type FencedRun = {
  epoch: number
  lastSeq: number
  conversationId: string | null
  /** The position of the run, or of the run whose turn it joined. */
  turn: number
}

export type CachedRun = FencedRun & {
  /** The seq of the last event in the journal table; later events are only in the tail. */
  foldedSeq: number
  /** The events after `foldedSeq` that are in the tail table, one per line. */
  tail: string
  /** How many rows of the tail table hold them. */
  tailRows: number
  /** The id of the first of these rows. */
  tailId: number
  /** The events that the current transaction adds after them, one per line. Before it is committed they are folded or get a row. */
  unwritten: string
  /** How many appends they come from; any number above 1 for several. */
  unwrittenAppends: number
  /** The id and the first seq of the first of these appends. Their row will have them. */
  unwrittenId: number
  unwrittenSeq: number
  /** Where the list of undos has the last copy of this entry. */
  savedAt: number
}

type Undo = { runId: string; entry: CachedRun; before: CachedRun | undefined }

export class RunCache {
  readonly #entries = new Map<string, CachedRun>()
  #undo: Undo[] = []
  /** A rollback may end here: a copy of an entry is made at most once after it. */
  #lastMark = 0

  get(runId: string): CachedRun | undefined {
    return this.#entries.get(runId)
  }

  entries(): Iterable<[string, CachedRun]> {
    return this.#entries
  }

  /** The entries that were added or changed since the last commit, in the order of their first changes. An entry may be in it several times. */
  changed(): readonly { runId: string; entry: CachedRun }[] {
    return this.#undo
  }

  /** Saves a copy for rollback. Call before changing an entry in place. */
  remember(runId: string, entry: CachedRun): void {
    // Most transactions have many appends of each run, and a copy for each would be much of what they hold in memory.
    if (entry.savedAt >= this.#lastMark && this.#undo[entry.savedAt]?.entry === entry) return
    const before = { ...entry }
    entry.savedAt = this.#undo.length
    this.#undo.push({ runId, entry, before })
  }

  add(runId: string, { epoch, lastSeq, conversationId, turn }: FencedRun): CachedRun {
    const entry = {
      epoch,
      lastSeq,
      conversationId,
      turn,
      foldedSeq: lastSeq,
      tail: '',
      tailRows: 0,
      tailId: 0,
      unwritten: '',
      unwrittenAppends: 0,
      unwrittenId: 0,
      unwrittenSeq: 0,
      savedAt: this.#undo.length,
    }
    this.#undo.push({ runId, entry, before: undefined })
    this.#entries.set(runId, entry)
    return entry
  }

  /** Call only if all events of the run are folded and its row in the database has the true last seq. */
  remove(runId: string): void {
    const entry = this.#entries.get(runId)
    if (entry === undefined) return
    this.#undo.push({ runId, entry, before: { ...entry } })
    this.#entries.delete(runId)
  }

  mark(): number {
    this.#lastMark = this.#undo.length
    return this.#lastMark
  }

  rollbackTo(mark: number): void {
    while (this.#undo.length > mark) {
      const { runId, entry, before } = this.#undo.pop() as Undo
      if (before === undefined) this.#entries.delete(runId)
      else this.#entries.set(runId, Object.assign(entry, before))
    }
  }

  commit(): void {
    this.#undo = []
    this.#lastMark = 0
  }
}
