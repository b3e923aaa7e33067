// Folds the stored events of a run into frames, for replies that are not streams: histories,
// and the check of a cursor. It uses the same fold as the live stream, so the two cannot
// disagree.

import { type Cursor, frameCursor } from '../dialects/cursor.ts'
import type { Dialect, Frame } from '../dialects/dialect.ts'
import { type EventReader, eventPages } from '../journal/event-pages.ts'
import type { RunEvent } from '../journal/event.ts'

export type StoredFrame = {
  frame: Frame
  /** The cursor of a reader that has this frame and all before it. */
  cursor: Cursor
  isLastOfEvent: boolean
}

export type FrameVisitor = {
  /** Called for every event, before its frames. */
  event?: (event: RunEvent) => void
  frame?: (stored: StoredFrame) => void
}

/** Folds the events up to `upToSeq`. `skipped` counts the rows that could not be read. */
export async function foldStoredFrames<State>(
  reader: EventReader,
  runId: string,
  dialect: Dialect<State>,
  visitor: FrameVisitor,
  upToSeq = Number.POSITIVE_INFINITY,
): Promise<{ state: State; skipped: number }> {
  let state = dialect.open({ runId })
  let skipped = 0
  for await (const page of eventPages(reader, runId)) {
    skipped += page.skipped
    for (const event of page.events) {
      if (event.seq > upToSeq) break
      visitor.event?.(event)
      const projection = dialect.step(state, event)
      state = projection.state
      const count = projection.frames.length
      for (const [index, frame] of projection.frames.entries())
        visitor.frame?.({ frame, cursor: frameCursor(event.seq, index, count), isLastOfEvent: index === count - 1 })
    }
    if (page.nextAfter >= upToSeq) break
  }
  return { state, skipped }
}
