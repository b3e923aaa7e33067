// Where a reader wants to go on. An EventSource that reconnects keeps its old URL
// and adds Last-Event-ID, so of the two the larger counts.

import { AppError } from '../errors/app-error.ts'
import { beginning, compareCursors, type Cursor, type Dialect, parseCursor } from '../dialects/dialect.ts'
import type { RunRow, Store } from '../stores/store.ts'

export function cursorOf(lastEventId: string | string[] | undefined, query: string | undefined): Cursor {
  const header = Array.isArray(lastEventId) ? lastEventId.at(-1) : lastEventId
  const given = [header, query].filter((text): text is string => text !== undefined && text !== '').map(parseCursor)
  return given.reduce((largest, cursor) => (compareCursors(cursor, largest) > 0 ? cursor : largest), beginning)
}

/** A cursor that this run never gave out is an error, never a silent restart. True when nothing can follow it. */
export async function checkCursor(
  cursor: Cursor,
  run: RunRow,
  dialect: Dialect,
  store: Pick<Store, 'readEvents'>,
): Promise<boolean> {
  if (cursor.seq > run.lastSeq) throw unknownCursor(cursor, run)
  const last = run.endedAt !== null && cursor.seq === run.lastSeq
  if (cursor.index === null) return last
  // Which frames an event has depends on what came before it, so the fold has to be asked.
  let state = dialect.open({ runId: run.id })
  let after = 0
  while (after < cursor.seq) {
    const page = await store.readEvents(run.id, after, 1000)
    for (const event of page.events) {
      const projection = dialect.step(state, event)
      state = projection.state
      if (event.seq !== cursor.seq) continue
      const { length } = projection.frames
      if (length < 2 || cursor.index > length) throw unknownCursor(cursor, run)
      return last && cursor.index === length
    }
    if (page.atHead) break
    after = page.nextAfter
  }
  throw unknownCursor(cursor, run)
}

function unknownCursor(cursor: Cursor, run: RunRow): AppError {
  const text = cursor.index === null ? String(cursor.seq) : `${cursor.seq}.${cursor.index}`
  return new AppError(
    'unknown_cursor',
    `The run has no event ${text}; it stands at ${run.lastSeq}. Send the id of the last frame you got, or 0.`,
  )
}
