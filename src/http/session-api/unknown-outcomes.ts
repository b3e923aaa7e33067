// A crash in the middle of a call that must not happen twice leaves a question for a
// person: run it again, or leave it? Clients of this wire cannot answer it, and go on by
// saying something new. That is the answer: it is left, the model is told that nobody
// knows, and the session goes on. A question before the first run of a call stays open:
// there a newer message waits its turn.
//
// Two things meet here, a newer message and a run that waits. Each is on disk before it
// looks for the other, so whichever comes second finds the first.

import { AppError } from '../../errors/app-error.ts'
import type { RunService } from '../../runs/run-service.ts'
import type { RunRow, Store } from '../../stores/store.ts'
import { sessionFamily } from './sessions.ts'

export type UnknownOutcomeParts = {
  store: Pick<Store, 'readRun' | 'openRuns' | 'interactionsOf'>
  runs: Pick<RunService, 'reject'>
}

/** `run` was accepted: runs of its session before it do not wait for a word about what a crash cut off. */
export async function leaveUnknownBefore(run: RunRow, parts: UnknownOutcomeParts): Promise<void> {
  const open = run.conversationId === null ? [] : await parts.store.openRuns(run.conversationId)
  const before = open.slice(
    0,
    open.findIndex(({ id }) => id === run.id),
  )
  for (const earlier of before) await leaveUnknown(earlier, parts)
}

/** A run has come to wait for a person; perhaps a newer message of its session waits already. */
export async function leaveUnknownWhereFollowed(runId: string, parts: UnknownOutcomeParts): Promise<void> {
  const run = await parts.store.readRun(runId)
  if (run?.family !== sessionFamily || run.conversationId === null) return
  const open = await parts.store.openRuns(run.conversationId)
  const later = open.slice(open.findIndex(({ id }) => id === runId) + 1)
  if (later.some(({ family }) => family === sessionFamily)) await leaveUnknown(run, parts)
}

async function leaveUnknown(run: RunRow, { store, runs }: UnknownOutcomeParts): Promise<void> {
  if (run.family !== sessionFamily) return
  for (const question of await store.interactionsOf(run.id)) {
    if (question.status !== 'pending' || question.outcome !== 'unknown') continue
    try {
      await runs.reject(run.owner, question.id, 'The session went on with a new message.')
    } catch (error) {
      // Decided by somebody else in the meantime, which is as good.
      if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
    }
  }
}
