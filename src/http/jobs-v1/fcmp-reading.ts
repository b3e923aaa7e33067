// A run read as FCMP from the store: its history, where a cursor stands in the
// journal, and whether it keeps its rules. All of them are the one fold that the
// live stream uses, so they cannot disagree with it.

import { beginning, type Cursor, type Dialect } from '../../dialects/dialect.ts'
import type { FcmpEnvelope } from '../../dialects/fcmp/envelope.ts'
import type { FcmpState } from '../../dialects/fcmp/fcmp.ts'
import { AppError } from '../../errors/app-error.ts'
import { checkInvariants, type Verdict } from '../../journal/check-invariants.ts'
import type { RunEvent } from '../../journal/event.ts'
import type { RunRow, Store } from '../../stores/store.ts'
import { eventPages } from '../../journal/event-pages.ts'
import { PageWindow } from '../page-window.ts'

type Reader = Pick<Store, 'readEvents'>

/** All stored events of a run, a page at a time; the number of rows that could not be read. */
export async function eachPage(
  store: Reader,
  runId: string,
  visit: (events: readonly RunEvent[]) => void,
): Promise<number> {
  let skipped = 0
  for await (const page of eventPages(store, runId)) {
    visit(page.events)
    skipped += page.skipped
  }
  return skipped
}

type Told = { envelope: FcmpEnvelope; at: Cursor }

async function fold(
  store: Reader,
  runId: string,
  dialect: Dialect<FcmpState>,
  visit: (told: Told) => void,
  also?: (event: RunEvent) => void,
): Promise<{ state: FcmpState; skipped: number }> {
  let state = dialect.open({ runId })
  const skipped = await eachPage(store, runId, (events) => {
    for (const event of events) {
      also?.(event)
      if (event.type === 'text.delta') continue
      const projection = dialect.step(state, event)
      state = projection.state
      const { length } = projection.frames
      for (const [index, frame] of projection.frames.entries()) {
        const at = { seq: event.seq, index: length === 1 ? null : index + 1 }
        visit({ envelope: frame.data as FcmpEnvelope, at })
      }
    }
  })
  return { state, skipped }
}

export type FcmpCursor = {
  /** The seq of the last envelope that the client has; 0 for none. */
  seq: number
  /** The client named it in `Last-Event-ID`: an EventSource that reconnects by itself. */
  reconnects: boolean
}

/** A client sends the `id` of the last chat_event that it got, or 0. The larger of header and query counts. */
export function fcmpCursorOf(lastEventId: string | string[] | undefined, query: string | undefined): FcmpCursor {
  const header = seqOf(Array.isArray(lastEventId) ? lastEventId.at(-1) : lastEventId)
  const asked = seqOf(query)
  return { seq: Math.max(header, asked), reconnects: header > 0 && header >= asked }
}

function seqOf(text: string | undefined): number {
  if (text === undefined || text.trim() === '') return 0
  if (/^\d{1,15}$/.test(text.trim())) return Number(text)
  const shown = JSON.stringify(text.slice(0, 60))
  throw new AppError(
    'unknown_cursor',
    `The cursor ${shown} cannot be read: send the seq of the last event you got, or 0.`,
  )
}

/** Where the stream goes on after FCMP's `seq`. `complete`: the run has ended and nothing follows. */
export async function locate(
  store: Reader,
  run: RunRow,
  dialect: Dialect<FcmpState>,
  seq: number,
): Promise<{ cursor: Cursor; complete: boolean }> {
  if (seq === 0) return { cursor: beginning, complete: false }
  let found: Cursor | undefined
  const { state } = await fold(store, run.id, dialect, ({ envelope, at }) => {
    if (envelope.seq === seq) found = at
  })
  if (found === undefined) {
    throw new AppError(
      'unknown_cursor',
      `The run has no event ${seq}; it stands at ${state.seq}. Send the seq of the last event you got, or 0.`,
    )
  }
  return { cursor: found, complete: run.endedAt !== null && seq === state.seq }
}

export type HistoryFilter = {
  fromSeq?: number | undefined
  toSeq?: number | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

/** As many as entries of a timeline. */
const historyEventsMax = 10_000

export type HistoryDiagnostic = { code: string; count: number; detail: string }

export async function readHistory(
  store: Reader,
  runId: string,
  dialect: Dialect<FcmpState>,
  { fromSeq = 0, toSeq = Infinity, fromMs = -Infinity, toMs = Infinity }: HistoryFilter,
): Promise<{ events: FcmpEnvelope[]; more: boolean; diagnostics: HistoryDiagnostic[] }> {
  const shown = new PageWindow<FcmpEnvelope>({ after: 0, limit: historyEventsMax })
  const { state, skipped } = await fold(store, runId, dialect, ({ envelope }) => {
    const at = Date.parse(envelope.ts)
    if (envelope.seq >= fromSeq && envelope.seq <= toSeq && at >= fromMs && at <= toMs) shown.add(envelope)
  })
  const diagnostics = [
    { code: 'HISTORY_ROW_UNREADABLE', count: skipped, detail: 'Stored rows that could not be read were left out.' },
    {
      code: 'SCHEMA_INTERNAL_INVALID',
      count: state.violations,
      detail: 'Events that did not fit the schema of the envelope were left out.',
    },
  ]
  return { events: shown.items, more: shown.more, diagnostics: diagnostics.filter(({ count }) => count > 0) }
}

export async function judge(
  store: Reader,
  runId: string,
  dialect: Dialect<FcmpState>,
): Promise<{ verdicts: Verdict[]; skipped: number }> {
  const events: RunEvent[] = []
  const envelopes: FcmpEnvelope[] = []
  const { skipped } = await fold(
    store,
    runId,
    dialect,
    ({ envelope }) => envelopes.push(envelope),
    (event) => events.push(event),
  )
  return { verdicts: checkInvariants(events, envelopes), skipped }
}
