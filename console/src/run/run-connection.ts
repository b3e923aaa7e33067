// How a tab reads a run that has not ended: over a stream if one of the browser's few places for them is free, and otherwise
// by asking again and again.

import type { StreamOptions } from '@polylog/client'
import type { Api } from '../api/api.ts'
import { takePlace } from '../feed/tab-lock.ts'
import type { JournalRow } from './journal-row.ts'

/** Streams of runs in all tabs together; a browser has six connections for everything. */
const streamsMax = 3
const sipEveryMs = 1000

/** True if this tab may open a stream; the place is held until `signal` is aborted. */
export async function takeStreamPlace(signal: AbortSignal): Promise<boolean> {
  return (await takePlace('polylog run', streamsMax, signal)) !== null
}

type RowOptions = StreamOptions & {
  /** The wires whose bytes the rows have, separated by commas. */
  formats: string
}

/** The rows of the journal of a run, live. */
export async function* journalRows(
  api: Api,
  runId: string,
  { formats, ...options }: RowOptions,
): AsyncGenerator<JournalRow, void, undefined> {
  const path = `/v1/agent/runs/${encodeURIComponent(runId)}/events/stream`
  const query = formats === '' ? {} : { formats }
  for await (const { message } of api.stream<JournalRow>(path, { ...options, query })) yield message
}

type SipOptions = {
  after: number
  formats: string
  signal: AbortSignal
  /** Called when everything that there is has been read. */
  onRest(): void
}

/** The same rows; reads what is new, closes the connection, and asks again a little later. */
export async function* sips(
  api: Api,
  runId: string,
  { signal, formats, onRest, ...from }: SipOptions,
): AsyncGenerator<JournalRow, void, undefined> {
  let { after } = from
  for (;;) {
    const { cursor, status } = await api.client.getRun(runId, { signal })
    const head = positionOf(cursor)
    const isOver = status === 'succeeded' || status === 'failed' || status === 'cancelled'
    if (after < head || isOver) {
      const controller = new AbortController()
      const end = () => controller.abort()
      signal.addEventListener('abort', end, { once: true })
      for await (const row of journalRows(api, runId, { after: String(after), formats, signal: controller.signal })) {
        after = row.seq
        yield row
        if (row.type === 'run.ended') return
        // Every event has a row, so the row of the newest event comes.
        if (!isOver && after >= head) break
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
