// For each open run, the rows of the tail table that are committed but not yet folded
// into the journal table. The main thread records them from its own writes, so a reader
// near the head finds its rows by id, without an index on the tail table. The reply of the writer
// says which rows it has merged or folded; until then the commit queue has the texts of rows that came by
// the log (`loggedBody`), so no reader looks for a row that does not exist.

export class JournalTails {
  /** [id, firstSeq, lastSeq, id, …], ascending. */
  readonly #tails = new Map<string, number[]>()

  add(runId: string, id: number, firstSeq: number, lastSeq: number): void {
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

  refs(runId: string): readonly number[] {
    return this.#tails.get(runId) ?? []
  }

  /** 0 if the run has no tail. */
  lastSeq(runId: string): number {
    return this.#tails.get(runId)?.at(-1) ?? 0
  }
}
