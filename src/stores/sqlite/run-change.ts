// The change of a run's row that comes with an append.

import type { RunStatus } from '../../journal/event.ts'
import type { Commands } from './commands.ts'

export type RunChange = NonNullable<Commands['append']['takes']['run']>

/** A copy of `isTerminal` in the journal. Importing that would load the schema library into the writer thread: 50 ms and 10 MB. */
export const terminal: ReadonlySet<RunStatus> = new Set<RunStatus>(['succeeded', 'failed', 'canceled'])

/** The change releases the lease or ends the run: the next writer, if any, has to claim it first. */
export function releasesRun(change: RunChange | undefined): boolean {
  return (
    change !== undefined && (change.release === true || (change.status !== undefined && terminal.has(change.status)))
  )
}
