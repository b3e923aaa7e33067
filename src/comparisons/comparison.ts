// The rules of a comparison, as pure functions: when a vote is possible, which vote counts,
// and which of the two answers belongs to the history.
//
// A side is the position of an answer (`a` first, `b` second). Voters learn only after the
// vote which configuration is on which side.

import { AppError } from '../errors/app-error.ts'
import type { RunStatus } from '../journal/event.ts'
import type { ComparisonRow, Preference } from '../stores/comparison-store.ts'
import type { MessageRow, MessageState } from '../stores/message-store.ts'

export type Side = 'a' | 'b'

export const preferences: readonly Preference[] = ['a', 'b', 'tie', 'both_bad']

/** Accepts any case, and spaces or hyphens for underscores: `A`, `Tie`, `both-bad`. */
export function parsePreference(text: string): Preference | undefined {
  const word = text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_')
  return preferences.find((preference) => preference === word)
}

/** The status of an arm's run; `gone` if the run has been deleted. */
export type ArmStatus = RunStatus | 'gone'

function isOpen(status: ArmStatus): boolean {
  return status === 'queued' || status === 'running' || status === 'waiting_user'
}

/** A vote needs both answers, so the comparison stays pending until both runs have ended. */
export function stateOf(a: ArmStatus, b: ArmStatus): ComparisonRow['state'] {
  if (isOpen(a) || isOpen(b)) return 'pending'
  return a === 'succeeded' && b === 'succeeded' ? 'ready' : 'failed'
}

/**
 * The answer that the conversation continues with before a vote: side a, unless only side b succeeded.
 */
export function sideWithoutVote(a: ArmStatus, b: ArmStatus): Side {
  return a !== 'succeeded' && b === 'succeeded' ? 'b' : 'a'
}

/** The answer that the conversation continues with after a vote. A vote for neither side keeps side a. */
export function sideAfterVote(preference: Preference): Side {
  return preference === 'b' ? 'b' : 'a'
}

/** The number of votes so far, replaced ones included. */
export function votesOn(row: ComparisonRow): number {
  return row.preference === null ? 0 : row.revisions.length + 1
}

/** Throws if the vote is not allowed. Returns false if it equals the current vote, so there is nothing to store. */
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
 * True while a vote is still possible. Until then the configurations are hidden. If an arm failed, there will be no
 * vote and nothing is hidden.
 */
export function waitsForVote(row: Pick<ComparisonRow, 'offered' | 'state' | 'preference'>): boolean {
  return row.offered && row.preference === null && row.state !== 'failed'
}

/** The message rows of the run of each arm. */
export type ArmMessages = Record<Side, readonly MessageRow[]>

/**
 * The row changes that make `side` the answer in the history. A question that both arms share stays active; if each
 * arm has its own question, the question follows its answer. Abandoned messages are never in the history.
 */
export function messageStates(arms: ArmMessages, side: Side): { id: string; state: MessageState }[] {
  const [first, second] = [questionOf(arms.a), questionOf(arms.b)]
  // An arm that failed before its first word has no answer, so its question is unknown and counts as shared.
  const shared = first === undefined || second === undefined || first === second
  return (['a', 'b'] as const).flatMap((arm) =>
    arms[arm]
      .filter((row) => row.state !== 'abandoned' && !(shared && row.role === 'user'))
      .map((row) => ({ id: row.id, state: arm === side ? ('active' as const) : ('superseded' as const) }))
      .filter(({ id, state }) => arms[arm].find((row) => row.id === id)?.state !== state),
  )
}

/** False if a later answer to the same question replaced both; a vote then does not change the history. */
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
