// The whole fold of a job, for what shows or reuses what came of it.

import { applyEvent, newRunState, type RunState } from '../journal/run-state.ts'
import type { RunRow, Store } from '../stores/store.ts'

const pageEvents = 1000

export async function readState(store: Pick<Store, 'readEvents'>, run: Pick<RunRow, 'id'>): Promise<RunState> {
  const state = newRunState()
  for (let after = 0; ;) {
    const page = await store.readEvents(run.id, after, pageEvents)
    for (const event of page.events) applyEvent(state, event)
    after = page.nextAfter
    if (page.atHead) return state
  }
}
