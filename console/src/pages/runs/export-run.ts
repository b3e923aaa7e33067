// A run as one JSON file: its row, all events of its journal, and the check of its rules.

import type { RunInfo } from '@polylog/client'
import type { Api } from '../../api/api.ts'

type EventPage = { events: unknown[]; next: number; hasMore: boolean }

/** Offers the file for download. Returns how many events it has. */
export async function exportRun(api: Api, runId: string): Promise<number> {
  const path = `/v1/agent/runs/${encodeURIComponent(runId)}`
  const run = await api.json<RunInfo>(path)
  const invariants = await api.json<unknown>(`${path}/invariants`)
  const head = JSON.stringify({ format: 'polylog.run/1', run, invariants })
  // Page by page as text, so that a long run is not held twice.
  const parts = [head.slice(0, -1), ',"events":[']
  let count = 0
  for (let page: EventPage = { events: [], next: 0, hasMore: true }; page.hasMore;) {
    page = await api.json<EventPage>(`${path}/events`, { query: { after: page.next } })
    for (const event of page.events) {
      parts.push(`${count === 0 ? '' : ',\n'}${JSON.stringify(event)}`)
      count += 1
    }
  }
  parts.push(']}\n')
  const url = URL.createObjectURL(new Blob(parts, { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `run-${runId}.json`
  link.click()
  // The browser has taken the file by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
  return count
}
