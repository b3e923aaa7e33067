// Reads a stored run as FCMP: its history, the journal position of an FCMP cursor, and
// the check of its invariants. All three use the same fold as the live stream, so they
// cannot disagree with it.

import { beginning, type Cursor, type CursorSpelling } from '../../dialects/cursor.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { invariantVerdicts, type RunVerdict } from '../../dialects/fcmp/check-invariants.ts'
import type { FcmpEnvelope } from '../../dialects/fcmp/envelope.ts'
import type { FcmpState } from '../../dialects/fcmp/fcmp.ts'
import { AppError } from '../../errors/app-error.ts'
import type { RunEvent } from '../../journal/event.ts'
import type { EventReader } from '../../journal/event-pages.ts'
import { nextTurn } from '../../kit/turns.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { PageWindow } from '../page-window.ts'
import { foldStoredFrames, type StoredFrame } from '../stored-frames.ts'

/** A client sends the `id` of the last chat_event that it received. That is FCMP's own seq; 0 means the beginning. */
export const fcmpSpelling: CursorSpelling<number> = {
  beginning: 0,
  parse(text) {
    if (text.trim() === '') return 0
    if (/^\d{1,15}$/.test(text.trim())) return Number(text)
    const shown = JSON.stringify(text.slice(0, 60))
    throw new AppError(
      'unknown_cursor',
      `The cursor ${shown} cannot be read: send the seq of the last event you got, or 0.`,
    )
  },
  furthest: Math.max,
}

/** The journal cursor of FCMP's `seq`. `complete` is true if the run has ended and this was its last envelope. */
export async function locateCursor(
  reader: EventReader,
  run: RunRow,
  dialect: Dialect<FcmpState>,
  seq: number,
): Promise<{ cursor: Cursor; complete: boolean }> {
  if (seq === 0) return { cursor: beginning, complete: false }
  let found: Cursor | undefined
  const { state } = await foldStoredFrames(reader, run.id, dialect, {
    frame: (stored) => {
      if (envelopeOf(stored).seq === seq) found = stored.cursor
    },
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

/** The same limit as for the entries of a timeline. */
const historyEventsMax = 10_000

export type HistoryDiagnostic = { code: string; count: number; detail: string }

export async function readHistory(
  reader: EventReader,
  runId: string,
  dialect: Dialect<FcmpState>,
  { fromSeq = 0, toSeq = Infinity, fromMs = -Infinity, toMs = Infinity }: HistoryFilter,
): Promise<{ events: FcmpEnvelope[]; more: boolean; diagnostics: HistoryDiagnostic[] }> {
  const shown = new PageWindow<FcmpEnvelope>({ after: 0, limit: historyEventsMax })
  const { state, skipped } = await foldStoredFrames(reader, runId, dialect, {
    frame: (stored) => {
      const envelope = envelopeOf(stored)
      const at = Date.parse(envelope.ts)
      if (envelope.seq >= fromSeq && envelope.seq <= toSeq && at >= fromMs && at <= toMs) shown.add(envelope)
    },
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

/** The rules of a longer run are not all checked in one turn of the event loop. */
const eventsInOneTurn = 5_000

export async function checkRunInvariants(
  reader: EventReader,
  runId: string,
  dialect: Dialect<FcmpState>,
): Promise<{ verdicts: RunVerdict[]; skipped: number }> {
  const events: RunEvent[] = []
  const envelopes: FcmpEnvelope[] = []
  const { skipped } = await foldStoredFrames(reader, runId, dialect, {
    event: (event) => void events.push(event),
    frame: (stored) => void envelopes.push(envelopeOf(stored)),
  })
  const verdicts: RunVerdict[] = []
  for (const verdict of invariantVerdicts(events, envelopes)) {
    verdicts.push(verdict)
    if (events.length > eventsInOneTurn) await nextTurn()
  }
  return { verdicts, skipped }
}

function envelopeOf({ frame }: StoredFrame): FcmpEnvelope {
  return frame.data as FcmpEnvelope
}
