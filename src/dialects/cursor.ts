// A cursor is a reader's position in a run: the reader has seen everything up to it. Each
// family of routes writes it in its own text format: the address of a frame (`12`, `12.2`),
// the addresses in both arms of a comparison (`a:12,b:7`), or the wire's own counter. The
// HTTP layer parses the text; the code below it only sees cursors.

import { AppError } from '../errors/app-error.ts'

/** `index` counts the frames of one event from 1; null means the whole event. */
export type Cursor = { readonly seq: number; readonly index: number | null }

/** The text format in which a family of routes writes its cursors. */
export type CursorSpelling<Position> = {
  readonly beginning: Position
  /** Throws `unknown_cursor` if the text cannot be parsed. */
  parse(text: string): Position
  /** The later of two positions. */
  furthest(left: Position, right: Position): Position
}

export const beginning: Cursor = { seq: 0, index: null }

/** The cursor of a reader whose last frame is number `index` (from 0) of the `count` frames of event `seq`. */
export function frameCursor(seq: number, index: number, count: number): Cursor {
  return { seq, index: count === 1 ? null : index + 1 }
}

export function cursorText({ seq, index }: Cursor): string {
  return index === null ? String(seq) : `${seq}.${index}`
}

/** The address of a frame: the cursor, as text, of a reader whose last frame is this one. */
export function addressOf(seq: number, index: number, count: number): string {
  return count === 1 ? String(seq) : `${seq}.${index + 1}`
}

/** True if a reader at `cursor` has already received frame `index` (from 0) of event `seq`. */
export function hasFrame(cursor: Cursor, seq: number, index: number): boolean {
  if (seq !== cursor.seq) return seq < cursor.seq
  return cursor.index === null || index < cursor.index
}

/** Parses `12` or `12.2`; throws `unknown_cursor` for anything else. */
export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,15})(?:\.([1-9]\d{0,5}))?$/.exec(text.trim())
  // No event has the number 0, so it has no frames: 0 alone is the beginning.
  if (match === null || (match[2] !== undefined && Number(match[1]) === 0)) {
    throw new AppError(
      'unknown_cursor',
      `The cursor ${JSON.stringify(text.slice(0, 60))} cannot be read: send the id of the last frame you got, or 0.`,
    )
  }
  return { seq: Number(match[1]), index: match[2] === undefined ? null : Number(match[2]) }
}

export function compareCursors(left: Cursor, right: Cursor): number {
  if (left.seq !== right.seq) return left.seq - right.seq
  return (left.index ?? Number.POSITIVE_INFINITY) - (right.index ?? Number.POSITIVE_INFINITY) || 0
}

export const addressSpelling: CursorSpelling<Cursor> = {
  beginning,
  parse: parseCursor,
  furthest: (left, right) => (compareCursors(left, right) >= 0 ? left : right),
}
