// Decides what happens to a run when its client disconnects: the run continues or is cancelled. The request decides,
// else the server's setting. Only the client whose request started the run can cancel it this way, not a client that
// attached later.

import type { FastifyBaseLogger } from 'fastify'
import type { StartRequest } from '../runs/start-request.ts'
import type { Services } from './routes.ts'

/** `started` is false if the request attached to an existing run. */
export function cancelsOnDisconnect(
  { settings }: Pick<Services, 'settings'>,
  start: Pick<StartRequest, 'onDisconnect'>,
  started: boolean,
): boolean {
  return started && (start.onDisconnect ?? settings.onDisconnect) === 'cancel'
}

/** The part of `StreamOptions` that cancels the runs when the client disconnects; empty unless `cancels`. */
export function disconnectOption(
  { runs }: Pick<Services, 'runs'>,
  log: Pick<FastifyBaseLogger, 'error'>,
  cancels: boolean,
  started: readonly { id: string; owner: string }[],
): { onGone?: () => void } {
  if (!cancels) return {}
  const cancel = async () => {
    await Promise.all(started.map((run) => runs.clientLeft(run.id, run.owner)))
  }
  return {
    onGone: () => void cancel().catch((error: unknown) => log.error({ err: error }, 'cancel on disconnect failed')),
  }
}
