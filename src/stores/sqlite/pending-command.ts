// A command that the commit queue has and whose caller waits for its result.

import type { AppError } from '../../errors/app-error.ts'
import type { RunRow } from '../run-store.ts'
import type { CommandBatch, CommandName } from './commands.ts'
import { changesNoRun, type HotAccept, type RunEffect, runIdOf } from './hot-commands.ts'
import type { ChangedFacts } from './known-facts.ts'
import type { LoggedBatch } from './logged-batches.ts'

/** The row of the journal tail that will hold the events of a command, unless the writer merges it with an earlier one (`onMerged`). */
export type TailRow = { runId: string; id: number; firstSeq: number; lastSeq: number }

export type Pending = {
  /** The command, encoded as described at `deltaMark`. */
  readonly values: CommandBatch['values']
  resolve(value: unknown): void
  reject(error: AppError): void
  /** One for each run that the command writes to; undefined if the command has no events for that run. */
  tailRows: readonly (TailRow | undefined)[]
  /** Undefined if the command changes no known run, or if it may change several. */
  effect: RunEffect | undefined
  /** What the rows are about that it changes; see `topicsOf`. Empty if it has no effect that is known. */
  topics: readonly string[]
  /** Undefined if it changes none. */
  facts: ChangedFacts | undefined
  /** It only adds events. */
  isDelta: boolean
  durable: boolean
}

export function valuesOf(batch: readonly Pending[]): CommandBatch['values'] {
  return batch.length === 1 ? (batch[0] as Pending).values : batch.flatMap(({ values }) => values)
}

/** It only adds events, and needs no sync. */
export function isPlainDelta({ isDelta, durable }: Pending): boolean {
  return isDelta && !durable
}

/** It changes neither the epoch nor the last seq of a run, except of one whose next command waits for it. */
export function leavesOtherRuns({ values, effect }: Pending): boolean {
  return effect !== undefined || changesNoRun(values[0] as CommandName)
}

/**
 * How many commands, from the first on, make a batch: at least one, and as many as have at most so many characters. If the first one may
 * be logged, the batch ends before the first one that only the database can execute.
 */
export function countUpTo(waiting: readonly Pending[], charsMax: number): number {
  const mayBeLogged = waiting[0]?.effect !== undefined
  let chars = 0
  for (const [index, { values, effect }] of waiting.entries()) {
    if (mayBeLogged && effect === undefined) return index
    for (const value of values) if (typeof value === 'string') chars += value.length
    if (chars > charsMax) return Math.max(1, index)
  }
  return waiting.length
}

/** What is known about a batch that goes to the log. Most batches are many deltas, so they are looked at once. */
export function loggedBatch(number: number, batch: readonly Pending[], record: Uint8Array): LoggedBatch {
  const tailIds: number[] = []
  const bodies = new Map<number, string>()
  const changedRuns: string[] = []
  const topics: string[] = []
  const facts: ChangedFacts[] = []
  for (const pending of batch) {
    const [row] = pending.tailRows
    if (row !== undefined) tailIds.push(row.id)
    if (pending.isDelta) continue
    if (pending.effect !== undefined) changedRuns.push(runIdOf(pending.effect))
    if (row !== undefined && pending.effect?.body !== undefined) bodies.set(row.id, pending.effect.body)
    topics.push(...pending.topics)
    if (pending.facts !== undefined) facts.push(pending.facts)
  }
  return { number, record, count: batch.length, tailIds, bodies, changedRuns, topics, facts, isAcknowledged: false }
}

export function accepted({ run }: HotAccept): { outcome: 'accepted'; run: RunRow } {
  return { outcome: 'accepted', run }
}

/** The row with the last seq that was stored: an accept that claims its run stores more events than one that does not. */
export function storedRow(row: TailRow, result: unknown): TailRow {
  if (typeof result !== 'object' || result === null || !('outcome' in result)) return row
  const { run } = result as { run?: Partial<RunRow> }
  return { ...row, lastSeq: run?.lastSeq ?? row.lastSeq }
}

/** True for a repeated accept, which found its run, and for a change that was refused: their events are not in the tail. */
export function hasStoredNothing(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'outcome' in value && value.outcome === 'existing'
}
