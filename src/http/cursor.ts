// Where a reader wants to go on. An EventSource that reconnects keeps its old URL
// and adds Last-Event-ID, so of the two the larger counts.

import { type Cursor, type CursorSpelling, compareCursors, cursorText } from '../dialects/cursor.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventReader } from '../journal/event-pages.ts'
import type { RunRow } from '../stores/run-store.ts'
import { foldStoredFrames, type StoredFrame } from './stored-frames.ts'

export function requestedCursor<Place>(
  spelling: CursorSpelling<Place>,
  lastEventId: string | string[] | undefined,
  query?: string,
): Place {
  const header = Array.isArray(lastEventId) ? lastEventId.at(-1) : lastEventId
  return [header, query]
    .filter((text): text is string => text !== undefined && text !== '')
    .map((text) => spelling.parse(text))
    .reduce((furthest, place) => spelling.furthest(furthest, place), spelling.beginning)
}

/** A cursor that this run never gave out is an error, never a silent restart. True when nothing can follow it. */
export async function checkCursor(
  cursor: Cursor,
  run: RunRow,
  dialect: Dialect,
  reader: EventReader,
): Promise<boolean> {
  if (cursor.seq > run.lastSeq) throw unknownCursor(cursor, run)
  const isLastEvent = run.endedAt !== null && cursor.seq === run.lastSeq
  if (cursor.index === null) return isLastEvent
  // Which frames an event has depends on what came before it, so the fold has to be asked.
  let found: StoredFrame | undefined
  const frame = (stored: StoredFrame) => {
    if (compareCursors(stored.cursor, cursor) === 0) found = stored
  }
  await foldStoredFrames(reader, run.id, dialect, { frame }, cursor.seq)
  if (found === undefined) throw unknownCursor(cursor, run)
  return isLastEvent && found.isLastOfEvent
}

function unknownCursor(cursor: Cursor, run: RunRow): AppError {
  return new AppError(
    'unknown_cursor',
    `The run has no event ${cursorText(cursor)}; it stands at ${run.lastSeq}. Send the id of the last frame you got, or 0.`,
  )
}
