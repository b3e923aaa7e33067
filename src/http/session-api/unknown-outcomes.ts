// A crash in the middle of a call that must not happen twice leaves a question for a
// person: run it again, or leave it? Clients of this wire cannot answer it, and go on by
// saying something new. That is the answer: it is left, the model is told that nobody
// knows, and the session goes on. A question before a first run of a call stays open:
// there a newer message waits its turn.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { RunService } from '../../runs/run-service.ts'
import type { RunRow, Store } from '../../stores/store.ts'

type Parts = { store: Pick<Store, 'openRuns' | 'interactionsOf'>; runs: Pick<RunService, 'settled' | 'reject'> }

/** Follows the runs before `run` until they have ended; not tied to the connection that brought the message. */
export function sealUnknownBefore(run: RunRow, parts: Parts, log: Pick<FastifyBaseLogger, 'error'>): void {
  seal(run, parts).catch((error: unknown) => log.error({ err: error }, 'a session may wait for a decision'))
}

async function seal(run: RunRow, { store, runs }: Parts): Promise<void> {
  if (run.conversationId === null) return
  const open = await store.openRuns(run.conversationId)
  const before = open.slice(
    0,
    open.findIndex(({ id }) => id === run.id),
  )
  for (const earlier of before) {
    const settled = await runs.settled(earlier, { orWaiting: true })
    if (settled.status !== 'waiting_user') continue
    for (const question of await store.interactionsOf(earlier.id)) {
      if (question.status !== 'pending' || question.outcome !== 'unknown') continue
      try {
        await runs.reject(earlier.owner, question.id, 'The session went on with a new message.')
      } catch (error) {
        // Decided by somebody else in the meantime, which is as good.
        if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
      }
    }
  }
}
