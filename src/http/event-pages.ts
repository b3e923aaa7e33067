// The stored events of a run, a page at a time, for readers that fold all of them. A long
// run has hundreds of pages, and reading one takes milliseconds: between two pages the
// event loop gets a turn, so that streams of others go on.

import type { EventPage, Store } from '../stores/store.ts'

const pageEvents = 1000

export async function* eventPages(store: Pick<Store, 'readEvents'>, runId: string): AsyncGenerator<EventPage, void> {
  let after = 0
  for (;;) {
    const page = await store.readEvents(runId, after, pageEvents)
    yield page
    if (page.atHead) return
    after = page.nextAfter
    await new Promise((resolve) => setImmediate(resolve))
  }
}
