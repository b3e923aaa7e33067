// Builds a page of events from stored rows, for every store. A row holds one event a line, as
// `encodeEvent` writes it. Text deltas are recognised by their text and not decoded.

import type { RunEvent } from './event.ts'
import { decodeEvent } from './event-codec.ts'
import type { EventPage } from './event-pages.ts'
import { decodedEvents, StoredDeltas, type StoredEvent } from './stored-events.ts'

// The two parts of a text delta exactly as `encodeEvent` writes it, so that its text can be sent unchanged. Lines with other
// escapes or longer numbers are decoded like any other event.
const seqAt = '{"seq":'.length
const betweenIdAndText = '","text":'.length
const deltaStart =
  // oxlint-disable-next-line no-control-regex
  /\{"seq":[1-9]\d{0,14},"at":(?:0|[1-9]\d{0,14}),"attempt":(?:0|[1-9]\d{0,8}),"type":"text\.delta","data":\{"messageId":"[^"\\\x00-\x1f]*","text":/y
// oxlint-disable-next-line no-control-regex
const deltaEnd = /"[^"\\\x00-\x1f]*(?:\\["\\bfnrt][^"\\\x00-\x1f]*)*"\}\}/y

/** The pattern needs memory for every escape in a line, so it is not tried on longer lines. */
const deltaLineCharsMax = 8 * 1024

/** In UTF-16 units, which is close enough to bytes. */
const pageCharsMax = 1024 * 1024

/**
 * Collects the events of one page from rows in the order of their seq. Bad data never makes it throw: lines that do not parse or
 * no longer fit their schema, and missing rows, are counted as skipped.
 */
export class EventPageBuilder {
  private readonly limit: number
  private readonly stored: StoredEvent[] = []
  private nextAfter: number
  private events = 0
  private skipped = 0
  private chars = 0
  /** The deltas of the current row, if its last line was one of them. */
  private deltas: StoredDeltas | null = null

  constructor(afterSeq: number, limit: number) {
    this.nextAfter = afterSeq
    this.limit = limit
  }

  /** Adds the events of a row whose last event is `lastSeq`. Returns false if the page is full: read no further rows. */
  add(body: unknown, lastSeq: number): boolean {
    if (typeof body === 'string' && !this.addLines(body, lastSeq)) return false
    this.skipTo(lastSeq)
    // Before the next row is read: rows can be long.
    return !this.isFull
  }

  /** No event that can be read is stored between the last one and `seq`. */
  skipTo(seq: number): void {
    this.skipped += seq - this.nextAfter
    this.nextAfter = seq
  }

  /** `lastSeq` is the seq of the newest stored event. */
  page(lastSeq: number): EventPage {
    const { stored, skipped, nextAfter } = this
    const atHead = nextAfter >= lastSeq
    if (!stored.some(({ type }) => type === 'stored.deltas'))
      return { events: stored as RunEvent[], skipped, nextAfter, atHead }
    let events: RunEvent[] | undefined
    return {
      get events() {
        events ??= decodedEvents(stored)
        return events
      },
      stored,
      skipped,
      nextAfter,
      atHead,
    }
  }

  private get isFull(): boolean {
    return this.events >= this.limit || (this.events > 0 && this.chars > pageCharsMax)
  }

  private addLines(body: string, lastSeq: number): boolean {
    this.deltas = null
    for (let start = 0, end = 0; start < body.length; start = end + 1) {
      const newline = body.indexOf('\n', start)
      end = newline === -1 ? body.length : newline
      const textStart = this.nextAfter < lastSeq ? this.textOfDelta(body, start, end) : -1
      const event = textStart === -1 ? decodeEvent(body.slice(start, end)) : null
      if (textStart === -1 && (event === null || event.seq <= this.nextAfter || event.seq > lastSeq)) {
        this.deltas = null
        continue
      }
      this.chars += end - start
      if (this.isFull) return false
      if (event === null) this.addDelta(body, start, textStart, end)
      else {
        this.deltas = null
        this.skipTo(event.seq - 1)
        this.stored.push(event)
      }
      this.nextAfter += 1
      this.events += 1
    }
    return true
  }

  /** The place of the text if the line is the text delta that comes next, else -1. */
  private textOfDelta(body: string, start: number, end: number): number {
    if (end - start > deltaLineCharsMax) return -1
    deltaStart.lastIndex = start
    if (!deltaStart.test(body) || seqIn(body, start) !== this.nextAfter + 1) return -1
    const textStart = deltaStart.lastIndex
    deltaEnd.lastIndex = textStart
    return deltaEnd.test(body) && deltaEnd.lastIndex === end ? textStart : -1
  }

  private addDelta(body: string, start: number, textStart: number, end: number): void {
    if (this.deltas === null || !isOfMessage(body, textStart, this.deltas.messageId)) {
      // Parsed, because a part of the row would keep the whole row in memory.
      const { messageId } = (JSON.parse(body.slice(start, end)) as { data: { messageId: string } }).data
      this.deltas = new StoredDeltas(body, this.nextAfter + 1, messageId)
      this.stored.push(this.deltas)
    }
    this.deltas.add(start, textStart, end)
  }
}

// Digit by digit, because a string for each line would cost more than all the rest.
function seqIn(body: string, start: number): number {
  let seq = 0
  for (let at = start + seqAt; ; at++) {
    const digit = body.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9)) return seq
    seq = seq * 10 + digit
  }
}

function isOfMessage(body: string, textStart: number, messageId: string): boolean {
  const end = textStart - betweenIdAndText
  const start = end - messageId.length
  return body[start - 1] === '"' && body.slice(start, end) === messageId
}
