// From times to places on a line, and back. Long waits (for a person, or in the queue) are cut short, so that an answer of two
// seconds is visible in a run that waited for a day. A replay uses the same scale: it does not wait where people did.

import type { Segment } from './waterfall.ts'

/** A part of the line. `start` and `end` are times; `from` and `to` are milliseconds on the line. */
type Piece = { start: number; end: number; from: number; to: number; isCut: boolean }

/** A wait is cut if it is longer than this part of the time at work… */
const longShare = 0.4
/** …and it is then shown as this part of it. */
const shownShare = 0.1
/** Shorter waits are never cut. */
const cutMinMs = 1000
/** A line is never empty. */
const lengthMinMs = 1

export class TimeScale {
  readonly start: number
  /** The length of the line in milliseconds. */
  readonly length: number
  private readonly pieces: readonly Piece[]

  constructor(start: number, end: number, waits: readonly { start: number; end: number }[] = []) {
    this.start = start
    const total = Math.max(lengthMinMs, end - start)
    const atWork = Math.max(lengthMinMs, total - sum(waits))
    const shownMs = atWork * shownShare
    const cuts = waits.filter(({ start: from, end: to }) => to - from > Math.max(cutMinMs, atWork * longShare))
    const pieces: Piece[] = []
    let from = 0
    const add = (first: number, last: number, length: number, isCut: boolean) => {
      if (last <= first) return
      pieces.push({ start: first, end: last, from, to: from + length, isCut })
      from += length
    }
    let at = start
    for (const cut of cuts) {
      add(at, cut.start, cut.start - at, false)
      add(cut.start, cut.end, shownMs, true)
      at = cut.end
    }
    add(at, start + total, start + total - at, false)
    this.pieces = pieces
    this.length = Math.max(lengthMinMs, from)
  }

  /** The place of a time on the line, in milliseconds from its beginning. */
  placeOf(time: number): number {
    const piece = this.pieces.findLast(({ start }) => start <= time)
    if (piece === undefined) return 0
    const part = Math.min(1, (time - piece.start) / (piece.end - piece.start))
    return piece.from + part * (piece.to - piece.from)
  }

  /** The same as a part of the whole line, from 0 to 1. */
  share(time: number): number {
    return this.placeOf(time) / this.length
  }

  timeAt(place: number): number {
    const piece = this.pieces.findLast(({ from }) => from <= place) ?? this.pieces[0]
    if (piece === undefined) return this.start
    const part = Math.min(1, Math.max(0, (place - piece.from) / (piece.to - piece.from)))
    return piece.start + part * (piece.end - piece.start)
  }

  /** The waits that were cut, as parts of the line, with their real length. */
  get cuts(): { from: number; to: number; ms: number }[] {
    return this.pieces
      .filter(({ isCut }) => isCut)
      .map(({ from, to, start, end }) => ({ from: from / this.length, to: to / this.length, ms: end - start }))
  }

  /** Round times since the start, for the axis, where nothing is cut before them. */
  ticks(count: number): { share: number; ms: number }[] {
    const step = roundStep(this.length / count)
    const ticks: { share: number; ms: number }[] = []
    for (const piece of this.pieces) {
      if (piece.isCut) continue
      const first = Math.ceil((piece.start - this.start) / step) * step
      for (let ms = first; ms <= piece.end - this.start && ticks.length < count * 3; ms += step) {
        const share = this.share(this.start + ms)
        const before = ticks.at(-1)
        // After a cut the next tick may be too close to the last one.
        if (before === undefined || share - before.share > 0.5 / count) ticks.push({ share, ms })
      }
    }
    return ticks
  }
}

/** The scale of a run, from the states that it went through. */
export function scaleOf(segments: readonly Segment[], start: number, end: number): TimeScale {
  const waits = segments
    .filter(({ kind }) => kind !== 'active')
    .map((segment) => ({ start: segment.start, end: Math.min(segment.end ?? end, end) }))
  return new TimeScale(start, end, waits)
}

function sum(waits: readonly { start: number; end: number }[]): number {
  return waits.reduce((total, { start, end }) => total + end - start, 0)
}

/** 1, 2 or 5 of some power of ten; minutes and hours above. */
function roundStep(ms: number): number {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000]
  const found = steps.find((step) => step >= ms)
  if (found !== undefined) return found
  const hour = 3_600_000
  return (
    [600_000, 1_800_000, hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour].find((step) => step >= ms) ?? 7 * 24 * hour
  )
}
