// Reads the timeline of a run page by page. A run may have hundreds of thousands of entries, so only one page is kept.

import type { Timeline } from '../../client/src/api.ts'
import type { PolylogClient } from '../../client/src/client.ts'

const pageEntries = 2_000

export async function* timelinePages(client: PolylogClient, runId: string): AsyncGenerator<Timeline> {
  let after = 0
  for (;;) {
    const page = await client.runs.timeline(runId, { after, limit: pageEntries })
    yield page
    const last = page.events.at(-1)
    if (!page.hasMore || last === undefined) return
    after = last.seq
  }
}
