// Reads and checks the cursor of a request. An EventSource that reconnects keeps its old
// URL and adds Last-Event-ID, so the larger of the two cursors is used.

import { type Cursor, type CursorSpelling, compareCursors, cursorText } from '../dialects/cursor.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventReader } from '../journal/event-pages.ts'
import type { RunRow } from '../stores/run-store.ts'
import { foldStoredFrames, type StoredFrame } from './stored-frames.ts'

export function requestedCursor<Position>(
  spelling: CursorSpelling<Position>,
  lastEventId: string | string[] | undefined,
  query?: string,
): Position {
  const header = Array.isArray(lastEventId) ? lastEventId.at(-1) : lastEventId
  return [header, query]
    .filter((text): text is string => text !== undefined && text !== '')
    .map((text) => spelling.parse(text))
    .reduce((furthest, position) => spelling.furthest(furthest, position), spelling.beginning)
}

export type CursorReader = EventReader & {
  /** Waits for events that the database lost and that are being stored again. Absent: it loses none. */
  restored?(run: RunRow, seq: number): Promise<RunRow>
}

/** Throws if the run has no such frame, instead of restarting silently. Returns true if nothing can follow the cursor. */
export async function checkCursor(
  cursor: Cursor,
  given: RunRow,
  dialect: Dialect,
  reader: CursorReader,
): Promise<boolean> {
  const run = cursor.seq > given.lastSeq ? ((await reader.restored?.(given, cursor.seq)) ?? given) : given
  if (cursor.seq > run.lastSeq) throw unknownCursor(cursor, run)
  const isLastEvent = run.endedAt !== null && cursor.seq === run.lastSeq
  if (cursor.index === null) return isLastEvent
  // The frames of an event depend on earlier events, so only the fold can tell whether this one exists.
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
