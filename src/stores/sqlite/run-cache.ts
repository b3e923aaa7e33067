// What the writer knows of the runs it is writing: epoch and last seq, against
// which every append is checked without asking the database, and the events that
// are only in the tail yet. The writer is the only one who writes, so this is the
// truth; it must then be rolled back together with the transaction.

export type CachedRun = {
  epoch: number
  lastSeq: number
  /** The events after this one are only in the tail. */
  foldedSeq: number
  /** They, one a line; and how many rows of the tail hold them, and the id of the first. */
  tail: string
  tailRows: number
  tailId: number
}

type Undo = { runId: string; entry: CachedRun; before: CachedRun | undefined }

export class RunCache {
  readonly #entries = new Map<string, CachedRun>()
  #undo: Undo[] = []

  get(runId: string): CachedRun | undefined {
    return this.#entries.get(runId)
  }

  entries(): Iterable<[string, CachedRun]> {
    return this.#entries
  }

  /** Call before an entry is changed in place. */
  remember(runId: string, entry: CachedRun): void {
    this.#undo.push({ runId, entry, before: { ...entry } })
  }

  add(runId: string, epoch: number, lastSeq: number): CachedRun {
    const entry = { epoch, lastSeq, foldedSeq: lastSeq, tail: '', tailRows: 0, tailId: 0 }
    this.#undo.push({ runId, entry, before: undefined })
    this.#entries.set(runId, entry)
    return entry
  }

  /** Only for runs whose row on disk has the true last seq and whose events are all folded. */
  remove(runId: string): void {
    const entry = this.#entries.get(runId)
    if (entry === undefined) return
    this.remember(runId, entry)
    this.#entries.delete(runId)
  }

  mark(): number {
    return this.#undo.length
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
  }
}
