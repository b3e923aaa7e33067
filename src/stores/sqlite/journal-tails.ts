// For each open run, the rows of the tail table that are committed but not yet folded
// into the journal table. The main thread records them from its own writes, so a reader
// near the head finds its rows by id, without an index on the tail table. Rows that only the log
// holds are kept here with their text. The reply of the writer says which rows it has merged or
// folded; until then their texts are here, so no reader looks for a row that does not exist.

export class JournalTails {
  /** [id, firstSeq, lastSeq, id, …], ascending. */
  readonly #tails = new Map<string, number[]>()
  /** The texts of rows that the database does not have yet, by their ids. */
  readonly #bodies = new Map<number, string>()

  /** `body`: the text of the row, if the database does not have it yet. */
  add(runId: string, id: number, firstSeq: number, lastSeq: number, body?: string): void {
    if (body !== undefined) this.#bodies.set(id, body)
    const refs = this.#tails.get(runId)
    if (refs === undefined) this.#tails.set(runId, [id, firstSeq, lastSeq])
    else refs.push(id, firstSeq, lastSeq)
  }

  /** The events from `firstSeq` to `lastSeq` are in one row now. They may be followed by others that only the log has. */
  merged(runId: string, id: number, firstSeq: number, lastSeq: number): void {
    const refs = this.#tails.get(runId)
    if (refs === undefined) return
    let last = refs.length - 3
    while (last > 0 && (refs[last + 2] as number) > lastSeq) last -= 3
    let first = last
    while (first > 0 && (refs[first + 1] as number) > firstSeq) first -= 3
    refs.splice(first, last + 3 - first, id, firstSeq, lastSeq)
  }

  /** The events up to `throughSeq` are in the journal table now, so their tail rows are forgotten. */
  folded(runId: string, throughSeq: number): void {
    const refs = this.#tails.get(runId)
    if (refs === undefined) return
    let kept = 0
    while (kept < refs.length && (refs[kept + 2] as number) <= throughSeq) kept += 3
    if (kept === refs.length) this.#tails.delete(runId)
    else refs.splice(0, kept)
  }

  /** The database has the rows with these ids. */
  applied(ids: readonly number[]): void {
    for (const id of ids) this.#bodies.delete(id)
  }

  /** Undefined if the database has the row. */
  body(id: number): string | undefined {
    return this.#bodies.get(id)
  }

  refs(runId: string): readonly number[] {
    return this.#tails.get(runId) ?? []
  }

  /** 0 if the run has no tail. */
  lastSeq(runId: string): number {
    return this.#tails.get(runId)?.at(-1) ?? 0
  }
}
