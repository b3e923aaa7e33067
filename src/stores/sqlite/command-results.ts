// The results of commands: which are certain before the database has executed the command, and who is told. The callers
// get the results, and the store hears which rows of the journal tail there are.

import type { AppError } from '../../errors/app-error.ts'
import { type BatchReply, type CommandName, type Commands, fromFailure } from './commands.ts'
import { changedFacts, KnownRuns, runEffect, type RunEffect, topicsOf } from './hot-commands.ts'
import { KnownFacts } from './known-facts.ts'
import type { LoggedBatch } from './logged-batches.ts'
import { accepted, hasStoredNothing, isPlainDelta, type Pending, storedRow, type TailRow } from './pending-command.ts'

export type ResultOptions = {
  onError(error: unknown): void
  /** Called after the commit, before the promise of the command resolves. The database has the row, or `loggedBody` has its text. */
  onStored(row: TailRow): void
  /** The writer has stored the events from `firstSeq` to `lastSeq` in this one row. `onStored` was called for each of their appends. */
  onMerged?(row: TailRow): void
  /** The events up to `lastSeq` were folded: read them from the journal table, not from the tail. */
  onFolded(runId: string, lastSeq: number): void
}

export const noTopics: readonly string[] = []

export class CommandResults {
  readonly #options: ResultOptions
  readonly #runs = new KnownRuns()
  readonly #facts = new KnownFacts()

  constructor(options: ResultOptions) {
    this.#options = options
  }

  /** A query has found that this is so (see known-facts.ts). Call it in the turn of the query. */
  learn(fact: string): void {
    this.#facts.lookedUp(fact)
  }

  /** Whether the run is open on this thread, and the database has all messages before it, also if it does not have the run yet. */
  isHistoryStored(runId: string): boolean {
    return this.#runs.get(runId)?.isHistoryStored === true
  }

  /** The command is queued now. Returns what is known about it. */
  queued<Name extends CommandName>(
    name: Name,
    input: Commands[Name]['takes'],
  ): Pick<Pending, 'effect' | 'topics' | 'facts'> {
    const effect = runEffect(name, input, (fact) => this.#facts.holds(fact))
    const topics = effect === undefined ? noTopics : topicsOf(name, input, this.#runs)
    const facts = changedFacts(name, input)
    // After its own effect is known, which may depend on what is true until now.
    if (facts !== undefined) this.#facts.queued(facts)
    return { effect, topics, facts }
  }

  /** The command only adds events, needs no sync, and is certain to succeed. */
  isCertainDelta(pending: Pending): boolean {
    const { effect } = pending
    return isPlainDelta(pending) && effect?.type === 'append' && this.#runs.isCertain(effect)
  }

  /** These deltas are certain, and count as executed from now on. */
  countAsExecuted(deltas: readonly Pending[]): void {
    for (const { effect } of deltas) this.#runs.foresee(effect as RunEffect)
  }

  /** Whether all of these commands, which have known effects, are certain to succeed. Those before the first that is not count as executed. */
  foresee(batch: readonly Pending[]): boolean {
    return batch.every(({ effect }) => this.#runs.foresee(effect as RunEffect))
  }

  /** The log has the batch, so its results are as they were foreseen. */
  acknowledge(batch: readonly Pending[]): void {
    for (const { effect, tailRows, resolve } of batch) {
      const value = effect?.type === 'accept' ? accepted(effect) : null
      const [row] = tailRows
      if (row !== undefined) this.#options.onStored(storedRow(row, value))
      resolve(value)
    }
  }

  /**
   * The log could not be written. `wereApplied` settles the facts of the batch, because the number of its record still counts as applied in
   * its turn.
   */
  refuse(batch: readonly Pending[], error: AppError): void {
    for (const { effect, reject } of batch) {
      if (effect !== undefined) this.#runs.forget(effect)
      reject(error)
    }
  }

  /** The database has executed batches that were acknowledged before. */
  wereApplied(logged: readonly LoggedBatch[]): void {
    for (const { facts } of logged) for (const changed of facts) this.#facts.settled(changed)
  }

  /** The writer has executed the batch. `isLogOpen`: the next commands of its runs may be logged, so the runs have to be known. */
  settle(batch: readonly Pending[], { failures, results }: BatchReply, isLogOpen: boolean): void {
    const values = new Map(results)
    const failed = new Map(failures)
    // Promises settle in the order of the batch, so a caller sees earlier commands settled first.
    for (const [index, pending] of batch.entries()) {
      if (pending.facts !== undefined) this.#facts.settled(pending.facts)
      const failure = failed.get(index)
      if (failure === undefined) {
        const value = values.get(index) ?? null
        // Every delta takes this path, so it uses an index instead of an iterator.
        for (let at = 0; at < pending.tailRows.length; at += 1) {
          const row = pending.tailRows[at]
          const result = Array.isArray(value) ? value[at] : value
          if (row !== undefined && !hasStoredNothing(result)) this.#options.onStored(storedRow(row, result))
        }
        if (isLogOpen) this.#runs.learn(pending.effect, value)
        pending.resolve(value)
      } else {
        const error = fromFailure(failure)
        if (error.code === 'store_unavailable') this.#options.onError(error)
        if (pending.effect !== undefined) this.#runs.forget(pending.effect)
        pending.reject(error)
      }
    }
  }

  /** The writer has executed no command of the batch. */
  fail(batch: readonly Pending[], error: AppError): void {
    for (const { effect, facts, reject } of batch) {
      if (effect !== undefined) this.#runs.forget(effect)
      if (facts !== undefined) this.#facts.settled(facts)
      reject(error)
    }
  }

  /** Call after `onStored` of all rows, and in the turn in which the texts of logged rows are dropped, because those rows may not exist. */
  tellRows({ folded, merged = [] }: BatchReply): void {
    for (let at = 0; at < merged.length; at += 4) {
      const [runId, id, firstSeq, lastSeq] = merged.slice(at, at + 4) as [string, number, number, number]
      this.#options.onMerged?.({ runId, id, firstSeq, lastSeq })
    }
    for (const [runId, lastSeq] of folded) this.#options.onFolded(runId, lastSeq)
  }
}
