// Nearly all events are text deltas, and a stream sends their text as the JSON that is stored.
// So a page from the store holds rows of deltas by their places in the stored text. They become
// events only for readers that ask for events.

import { jsonString } from '../kit/json-string.ts'
import type { EventOf, RunEvent } from './event.ts'
import { decodeEvent } from './event-codec.ts'

/** A text delta whose text is JSON, as it is stored and sent. */
export interface JsonDelta {
  readonly seq: number
  readonly at: number
  readonly messageId: string
  /** The text as a JSON string, with its quotes, as `JSON.stringify` writes it. */
  readonly textJson: string
}

/** Stored text deltas of one message, with consecutive seqs, each a line of `body` as `encodeEvent` writes it. */
export class StoredDeltas {
  readonly type = 'stored.deltas'
  /** The seq of the first delta. */
  readonly seq: number
  readonly messageId: string
  private readonly body: string
  private readonly lines: number[] = []
  private readonly texts: number[] = []
  private end = 0

  constructor(body: string, seq: number, messageId: string) {
    this.body = body
    this.seq = seq
    this.messageId = messageId
  }

  /** The line from `start` to `end`, whose text begins with the quote at `textStart`. Lines are added in order. */
  add(start: number, textStart: number, end: number): void {
    this.lines.push(start)
    this.texts.push(textStart)
    this.end = end
  }

  get length(): number {
    return this.lines.length
  }

  get lastSeq(): number {
    return this.seq + this.length - 1
  }

  /** The JSON of a delta's text. The line ends with it and `}}`. */
  textJson(index: number): string {
    return this.body.slice(this.texts[index], this.lineEnd(index) - 2)
  }

  event(index: number): EventOf<'text.delta'> {
    return decodeEvent(this.body.slice(this.lines[index], this.lineEnd(index))) as EventOf<'text.delta'>
  }

  events(): EventOf<'text.delta'>[] {
    return this.lines.map((_, index) => this.event(index))
  }

  private lineEnd(index: number): number {
    const next = this.lines[index + 1]
    return next === undefined ? this.end : next - 1
  }
}

/** An event, or a row of text deltas that are not decoded. */
export type StoredEvent = RunEvent | StoredDeltas

export function decodedEvents(stored: readonly StoredEvent[]): RunEvent[] {
  return stored.flatMap((item): RunEvent | RunEvent[] => (item.type === 'stored.deltas' ? item.events() : item))
}

/** Shows one stored delta at a time, at `index`, so that a walk over them needs no object for each. */
export class StoredDeltaView implements JsonDelta {
  index = 0
  readonly messageId: string
  private readonly deltas: StoredDeltas

  constructor(deltas: StoredDeltas) {
    this.deltas = deltas
    this.messageId = deltas.messageId
  }

  get seq(): number {
    return this.deltas.seq + this.index
  }

  get at(): number {
    return this.deltas.event(this.index).at
  }

  get textJson(): string {
    return this.deltas.textJson(this.index)
  }
}

/** Encodes the text of an event when it is asked for, since not every dialect does. */
export class EventDelta implements JsonDelta {
  readonly seq: number
  readonly at: number
  readonly messageId: string
  private readonly text: string

  constructor({ seq, at, data }: EventOf<'text.delta'>) {
    this.seq = seq
    this.at = at
    this.messageId = data.messageId
    this.text = data.text
  }

  get textJson(): string {
    return jsonString(this.text)
  }
}
