// What a client that hangs up means for the runs that its request started: nothing, or their cancel, as the request
// says, else the server's setting. Only the request that started a run counts; a client that attached to it does not.

import type { FastifyBaseLogger } from 'fastify'
import type { StartRequest } from '../runs/start-request.ts'
import type { Services } from './routes.ts'

/** `started` is false if the run was there before: the request attached to it. */
export function cancelsOnDisconnect(
  { settings }: Pick<Services, 'settings'>,
  start: Pick<StartRequest, 'onDisconnect'>,
  started: boolean,
): boolean {
  return started && (start.onDisconnect ?? settings.onDisconnect) === 'cancel'
}

/** For `StreamOptions`: cancels the runs when the client is gone, if `cancels`. */
export function goneOption(
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
