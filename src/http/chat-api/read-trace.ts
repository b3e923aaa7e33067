// Reads a run's journal, page by page, into its trace.

import { addToTrace, openTrace, type Trace } from '../../dialects/chunks/trace.ts'
import { withoutIdentity } from '../../dialects/undecided-arm.ts'
import type { Store } from '../../stores/store.ts'

const pageEvents = 1000

/** Rows that can no longer be read are left out and never break the trace. */
export async function readTrace(
  store: Pick<Store, 'readEvents'>,
  runId: string,
  /** The run is an arm of a comparison that waits for its vote. */
  undecided = false,
): Promise<Trace> {
  const fold = openTrace(runId)
  let after = 0
  for (;;) {
    const page = await store.readEvents(runId, after, pageEvents)
    for (const event of page.events) {
      const shown = undecided ? withoutIdentity(event) : event
      if (shown !== null) addToTrace(fold, shown)
    }
    after = page.nextAfter
    if (page.atHead) return undecided ? { ...fold.trace, total_duration_ms: null } : fold.trace
  }
}
