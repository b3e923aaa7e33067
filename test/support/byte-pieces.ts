// The bytes of a stream in pieces, as a network delivers them: cut anywhere, or an event at a time.

import { beginning } from '../../src/dialects/cursor.ts'
import { type Dialect, encodeEvents } from '../../src/dialects/dialect.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'

/** Bytes as they are on their way. */
export type Pieces = readonly Uint8Array[]

export function bytesOfText(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function cutBytes(bytes: Uint8Array, places: readonly number[]): Pieces {
  const edges = [0, ...new Set(places.toSorted((left, right) => left - right)), bytes.length]
  return edges
    .slice(1)
    .map((edge, index) => bytes.subarray(edges[index], edge))
    .filter(({ length }) => length > 0)
}

/** As a live stream comes: an event at a time, with a keep-alive after each. Does not stop where a stream ends. */
export function piecesByEvent<State>(dialect: Dialect<State>, { runId, events }: Scenario): Pieces {
  const pieces: Uint8Array[] = []
  let state = dialect.open({ runId })
  for (const event of events) {
    const encoded = encodeEvents(dialect, state, [event], beginning)
    state = encoded.state
    for (const text of [encoded.text, dialect.keepAlive(0, 1) ?? '']) if (text !== '') pieces.push(bytesOfText(text))
  }
  return pieces
}
