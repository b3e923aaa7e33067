// The remote side of a turn engine, before and after the turn itself: the handle that the previous
// run of the conversation left, and stopping a remote turn whose run ends here.

import type { JsonValue } from '../journal/event.ts'
import { engineOf, type RunState } from '../journal/run-state.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { isTurnFinished } from './turn-phase.ts'

/** How many events of the end of a run are read to find its last handle. */
const lastEventsRead = 16

/** How long the end of a run waits for the remote side of its turn to stop. */
const remoteAbortMs = 5_000

/** The handle with which this engine ended the previous run of the conversation. It is one of the last events of that run. */
export async function handleOfPreviousRun(
  engine: string,
  runId: string,
  history: readonly MessageRow[],
  store: Pick<RunStore, 'readRun' | 'readEvents'>,
): Promise<JsonValue | undefined> {
  const previousId = history.findLast((row) => row.runId !== null && row.runId !== runId)?.runId
  const previous = previousId == null ? undefined : await store.readRun(previousId)
  if (previous === undefined) return undefined
  const { events } = await store.readEvents(previous.id, Math.max(0, previous.lastSeq - lastEventsRead), lastEventsRead)
  const found = events.findLast((event) => event.type === 'engine.handle' && event.data.engine === engine)
  return found?.type === 'engine.handle' ? (found.data.handle ?? undefined) : undefined
}

/** Stops the remote turn of a run that ends here, so that the remote agent does not go on unseen. Waits a bounded time. */
export async function abortRemoteTurn(
  runId: string,
  state: RunState,
  { engines, clock, log }: Pick<RunDependencies, 'engines' | 'clock' | 'log'>,
): Promise<void> {
  if (state.accepted === undefined || state.handle === undefined) return
  const abort = new AbortController()
  const timer = clock.after(remoteAbortMs, () => abort.abort(new Error('the remote side did not answer in time')))
  try {
    const engine = engines.get(engineOf(state))
    if (engine.kind !== 'turn' || isTurnFinished(state)) return
    await Promise.race([engine.abort(state.handle, abort.signal), rejectWhenAborted(abort.signal)])
  } catch (error) {
    log.warn({ runId, err: error }, 'the remote turn of a run that ended could not be stopped')
  } finally {
    timer.cancel()
  }
}

function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )
}
