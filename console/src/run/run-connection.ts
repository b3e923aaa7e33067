// How a tab reads a run that has not ended: over a stream if one of the browser's few places for them is free, and otherwise
// by asking again and again.

import type { Api } from '../api/api.ts'
import { takePlace } from '../feed/tab-lock.ts'

/** Streams of runs in all tabs together; a browser has six connections for everything. */
const streamsMax = 3
const sipEveryMs = 1000

/** True if this tab may open a stream; the place is held until `signal` is aborted. */
export async function takeStreamPlace(signal: AbortSignal): Promise<boolean> {
  return (await takePlace('polylog run', streamsMax, signal)) !== null
}

type SipOptions<Item> = {
  after: string
  signal: AbortSignal
  open(options: { after: string; signal: AbortSignal }): AsyncIterable<Item>
  /** How many of the newest events may have no item. */
  eventsWithoutItem: number
  /** True for the last item of every run. */
  isLast(item: Item): boolean
  /** Called when everything that there is has been read. */
  onRest(): void
}

/** Reads what is new, closes the connection, and asks again a little later. */
export async function* sips<Item extends { id: string }>(
  api: Api,
  runId: string,
  { signal, open, eventsWithoutItem, isLast, onRest, ...from }: SipOptions<Item>,
): AsyncGenerator<Item, void, undefined> {
  let { after } = from
  let seen = '0'
  for (;;) {
    const { cursor, status } = await api.client.getRun(runId, { signal })
    const isOver = status === 'succeeded' || status === 'failed' || status === 'cancelled'
    if (cursor !== seen || isOver) {
      seen = cursor
      const controller = new AbortController()
      const end = () => controller.abort()
      signal.addEventListener('abort', end, { once: true })
      for await (const item of open({ after, signal: controller.signal })) {
        after = item.id
        yield item
        if (isLast(item)) return
        if (!isOver && positionOf(after) >= positionOf(cursor) - eventsWithoutItem) break
      }
      end()
      signal.removeEventListener('abort', end)
      if (isOver) return
    }
    onRest()
    await new Promise((resolve) => setTimeout(resolve, sipEveryMs))
    signal.throwIfAborted()
  }
}

/** The number of the event in the journal that a cursor leads to. Some events have no frame, and some have several. */
export function positionOf(cursor: string): number {
  return Number.parseInt(cursor, 10)
}
