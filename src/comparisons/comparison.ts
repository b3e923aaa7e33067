// The rules of a comparison, pure: when there is something to vote on, which vote
// counts, and which of the two answers is the history.
//
// A side is where an answer is shown (`a` first, `b` second); which configuration
// gave it is known only after the vote.

import { AppError } from '../errors/app-error.ts'
import type { RunStatus } from '../journal/event.ts'
import type { ComparisonRow, Preference } from '../stores/comparison-store.ts'
import type { MessageRow, MessageState } from '../stores/message-store.ts'

export type Side = 'a' | 'b'

export const preferences: readonly Preference[] = ['a', 'b', 'tie', 'both_bad']

/** Any spelling of the four words: `A`, `Tie`, `both-bad`. */
export function parsePreference(text: string): Preference | undefined {
  const word = text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_')
  return preferences.find((preference) => preference === word)
}

/** How an arm stands: `gone` where its run is no longer kept. */
export type ArmStatus = RunStatus | 'gone'

function isOpen(status: ArmStatus): boolean {
  return status === 'queued' || status === 'running' || status === 'waiting_user'
}

/** Both answers are needed for a vote; while one may still come nothing is decided. */
export function stateOf(a: ArmStatus, b: ArmStatus): ComparisonRow['state'] {
  if (isOpen(a) || isOpen(b)) return 'pending'
  return a === 'succeeded' && b === 'succeeded' ? 'ready' : 'failed'
}

/**
 * The answer that the conversation goes on with before anybody voted: the first, unless it failed and the second
 * did not.
 */
export function sideWithoutVote(a: ArmStatus, b: ArmStatus): Side {
  return a !== 'succeeded' && b === 'succeeded' ? 'b' : 'a'
}

/** What the conversation goes on with: who prefers neither goes on with the first. */
export function sideAfterVote(preference: Preference): Side {
  return preference === 'b' ? 'b' : 'a'
}

/** What was voted already, replaced votes included. */
export function votesOn(row: ComparisonRow): number {
  return row.preference === null ? 0 : row.revisions.length + 1
}

/** Throws where the vote may not come. False: it says what stands there already, and nothing is to be done. */
export function voteCounts(row: ComparisonRow, preference: Preference, revise: boolean): boolean {
  if (row.state === 'pending') {
    throw new AppError(
      'comparison_not_ready',
      'Both answers must be complete before a vote. Wait for the end of the stream.',
      {
        details: { comparisonId: row.id },
      },
    )
  }
  if (row.state === 'failed') {
    throw new AppError(
      'comparison_failed',
      'One of the answers failed, so there is nothing to compare and no vote is asked.',
      {
        details: { comparisonId: row.id },
      },
    )
  }
  if (row.preference === null) return true
  if (!revise) {
    throw new AppError(
      'comparison_voted',
      `This comparison has a vote: ${row.preference}. Send revise: true to change it.`,
      {
        details: { comparisonId: row.id, preference: row.preference },
      },
    )
  }
  return row.preference !== preference
}

/**
 * True while a vote may still come: until then nobody is told which configuration gave which answer. If an arm failed
 * there will be no vote, and nothing to hide.
 */
export function waitsForVote(row: Pick<ComparisonRow, 'offered' | 'state' | 'preference'>): boolean {
  return row.offered && row.preference === null && row.state !== 'failed'
}

/** The messages of either arm, as rows of its run. */
export type ArmMessages = Record<Side, readonly MessageRow[]>

/**
 * Which rows change so that `side` is the history. A question that both arms share stays; where each arm brought its
 * own, the question goes with its answer. What was torn or never finished belongs to no history.
 */
export function messageStates(arms: ArmMessages, side: Side): { id: string; state: MessageState }[] {
  const [first, second] = [questionOf(arms.a), questionOf(arms.b)]
  // An arm that failed before its first word has no answer that would tell.
  const shared = first === undefined || second === undefined || first === second
  return (['a', 'b'] as const).flatMap((arm) =>
    arms[arm]
      .filter((row) => row.state !== 'abandoned' && row.metadata.torn !== true && !(shared && row.role === 'user'))
      .map((row) => ({ id: row.id, state: arm === side ? ('active' as const) : ('superseded' as const) }))
      .filter(({ id, state }) => arms[arm].find((row) => row.id === id)?.state !== state),
  )
}

/** False where a later answer to the same question took the place of both: a vote then changes no history. */
export function standsInHistory(arms: ArmMessages): boolean {
  return [...arms.a, ...arms.b].some((row) => row.role === 'assistant' && row.state === 'active')
}

function questionOf(rows: readonly MessageRow[]): string | null | undefined {
  return rows.find((row) => row.role === 'assistant')?.parentId
}

/** The configuration behind a side. */
export function configOf(row: ComparisonRow, side: Side): string {
  return (side === 'a') === row.firstSideIsConfigA ? row.configA : row.configB
}
