// What every dialect promises, checked with every scenario: it is pure, its fast path gives the
// same bytes as its slow path, and a reader that comes back with any address that it was given
// gets exactly the rest.
//
// The mistakes that this finds: an id or a time that the dialect makes itself, a state that is
// changed after it was returned, or a counter outside of the state.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { addressOf, beginning, compareCursors, type Cursor, parseCursor } from '../../src/dialects/cursor.ts'
import { type Dialect, encodeEvents, endsStream, type Frame } from '../../src/dialects/dialect.ts'
import type { RunEvent } from '../../src/journal/event.ts'
import { checkEvent, encodeEvent } from '../../src/journal/event-codec.ts'
import { EventPageBuilder } from '../../src/journal/event-page-builder.ts'
import { EventDelta } from '../../src/journal/stored-events.ts'
import { SharedMap } from '../../src/kit/shared-map.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'

type AddressedFrame = {
  readonly seq: number
  readonly address: string
  readonly frame: Frame
  readonly text: string
}

/** The frames of a whole run, by the slow way only. */
export function framesOf<State>(dialect: Dialect<State>, { runId, events }: Scenario): AddressedFrame[] {
  const out: AddressedFrame[] = []
  let state = dialect.open({ runId })
  for (const event of events) {
    const projection = dialect.step(state, event)
    state = projection.state
    for (const [index, frame] of projection.frames.entries()) {
      const address = addressOf(event.seq, index, projection.frames.length)
      out.push({ seq: event.seq, address, frame, text: dialect.encode(frame, address) })
    }
  }
  return out
}

/** What a reader gets that comes with `cursor` and stays until its stream is over. */
export function textOf<State>(dialect: Dialect<State>, scenario: Scenario, cursor: Cursor = beginning): string {
  return encodeEvents(dialect, dialect.open({ runId: scenario.runId }), scenario.events, cursor).text
}

/** The first event after `seq` that ends the stream; the last of the run if there is none. */
function endAfter<State>(dialect: Dialect<State>, { events }: Scenario, seq: number): number {
  return events.find((event) => event.seq > seq && endsStream(dialect, event))?.seq ?? events.length
}

export function dialectContract<State>(dialect: Dialect<State>): void {
  describe(`the dialect ${dialect.name}`, () => {
    for (const scenario of scenarios) {
      describe(`with “${scenario.name}”`, () => {
        it('gives the same output at any time', (t) => tellsTheSame(t, dialect, scenario))
        it('never changes a state that it gave out', () => leavesStatesAlone(dialect, scenario))
        it('encodes a text delta to the same bytes on both paths', () => encodesDeltasAlike(dialect, scenario))
        it('encodes stored events to the bytes of the live ones', () => encodesStoredEventsAlike(dialect, scenario))
        it('gives addresses that grow and can be read back', () => givesGrowingAddresses(dialect, scenario))
        it('resumes after any address with exactly the rest', () => resumesAnywhere(dialect, scenario))
        it('gives every frame once to a reader that always comes back', () => comesBackUntilTheEnd(dialect, scenario))
        it('goes on from any state that a live stream holds', () => goesOnFromAnyState(dialect, scenario))
        it('contains nothing of the state of a provider', () => hidesProviderState(dialect, scenario))
        it('is over at the end of the run and sends nothing after it', () => isOverAtTheEnd(dialect, scenario))
      })
    }

    it('keeps a connection alive with whole lines without an id, or not at all', () => {
      const bytes = dialect.keepAlive(Date.UTC(2026, 0, 1), 1)

      assert.ok(bytes === null || bytes.endsWith('\n'))
      assert.doesNotMatch(bytes ?? '', /^id:/m)
    })

    it('has lower-case header names, so that none is sent twice', () => {
      for (const name of Object.keys(dialect.headers)) assert.equal(name, name.toLowerCase())
    })
  })
}

function hidesProviderState<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const provider = { name: 'anthropic', model: 'claude', state: [{ signature: 'opaque' }] }
  const events = scenario.events.map((event): RunEvent =>
    event.type === 'step.done' ? { ...event, data: { ...event.data, provider } } : event,
  )

  assert.equal(textOf(dialect, { ...scenario, events }), textOf(dialect, scenario))
}

function tellsTheSame<State>(t: TestContext, dialect: Dialect<State>, scenario: Scenario): void {
  t.mock.timers.enable({ apis: ['Date'] })
  const first = textOf(dialect, scenario)

  t.mock.timers.tick(86_400_000)

  assert.equal(textOf(dialect, scenario), first)
}

/** A copy of a state. Maps that share entries with others become maps of their own. */
function plain(value: unknown): unknown {
  if (value instanceof SharedMap) return new Map([...value].map(([key, inner]) => [key, plain(inner)]))
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(plain)
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}

function leavesStatesAlone<State>(dialect: Dialect<State>, { runId, events }: Scenario): void {
  let state = dialect.open({ runId })
  for (const event of events) {
    const before = plain(state)

    const once = dialect.step(state, event)
    const twice = dialect.step(state, event)

    assert.deepEqual(plain(state), before)
    assert.deepEqual(plain(once), plain(twice))
    state = once.state
  }
}

function encodesDeltasAlike<State>(dialect: Dialect<State>, { runId, events }: Scenario): void {
  let state = dialect.open({ runId })
  for (const event of events) {
    const { state: next, frames } = dialect.step(state, event)
    const quick = event.type === 'text.delta' ? dialect.encodeDelta(state, new EventDelta(event)) : null
    if (quick !== null) {
      assert.equal(frames.length, 1)
      assert.equal(quick, dialect.encode(frames[0] as Frame, addressOf(event.seq, 0, 1)))
      assert.deepEqual(plain(next), plain(state), 'the fast way keeps the state, so the slow one has to keep it too')
    }
    state = next
  }
}

function encodesStoredEventsAlike<State>(dialect: Dialect<State>, { runId, events }: Scenario): void {
  const lastSeq = events.at(-1)?.seq ?? 0
  const written = events.map(checkEvent)
  const builder = new EventPageBuilder(0, events.length + 1)
  builder.add(written.map(encodeEvent).join('\n'), lastSeq)
  const page = builder.page(lastSeq)
  for (const cursor of [beginning, { seq: lastSeq >> 1, index: null }]) {
    const live = encodeEvents(dialect, dialect.open({ runId }), written, cursor)
    const decoded = encodeEvents(dialect, dialect.open({ runId }), page.events, cursor)
    const stored = encodeEvents(dialect, dialect.open({ runId }), page.stored ?? page.events, cursor)
    assert.deepEqual(stored, live)
    assert.deepEqual(decoded, live)
  }
}

function givesGrowingAddresses<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const cursors = framesOf(dialect, scenario).map(({ address }) => parseCursor(address))

  for (const [index, cursor] of cursors.entries()) {
    const before = cursors[index - 1] ?? beginning
    assert.ok(compareCursors(before, cursor) < 0)
  }
}

function resumesAnywhere<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const frames = framesOf(dialect, scenario)
  /** The frames from `from` up to where a stream ends whose reader has seen the event `seq`. */
  const rest = (from: number, seq: number) =>
    frames
      .slice(from)
      .filter((frame) => frame.seq <= endAfter(dialect, scenario, seq))
      .map(({ text }) => text)
      .join('')
  assert.equal(textOf(dialect, scenario), rest(0, 0))

  for (const [index, { seq, address }] of frames.entries()) {
    // With frames of its event still to come, the event is not seen yet.
    const seen = frames[index + 1]?.seq === seq ? seq - 1 : seq
    assert.equal(textOf(dialect, scenario, parseCursor(address)), rest(index + 1, seen), `after ${address}`)
  }
  // A bare seq is a cursor too, also of an event that has no frame or several.
  for (const { seq } of scenario.events) {
    const seen = frames.filter((frame) => frame.seq <= seq).length
    assert.equal(textOf(dialect, scenario, { seq, index: null }), rest(seen, seq), `after event ${seq}`)
  }
}

/**
 * A client that comes back with its last address whenever its stream ends gets every frame once, in order. So the event that
 * ends a stream has a frame: without one, the client could never say that it is past that event.
 */
function comesBackUntilTheEnd<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const frames = framesOf(dialect, scenario)
  const ends = scenario.events.filter((event) => endsStream(dialect, event)).map(({ seq }) => seq)
  let got = ''
  let cursor = beginning
  for (const end of ends) {
    const { text, over } = encodeEvents(dialect, dialect.open({ runId: scenario.runId }), scenario.events, cursor)
    assert.equal(over, true)
    got += text
    cursor = parseCursor(frames.findLast(({ seq }) => seq <= end)?.address ?? '0')
  }
  assert.equal(got, frames.map(({ text }) => text).join(''))
}

function goesOnFromAnyState<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const whole = textOf(dialect, scenario)

  for (let cut = 0; cut <= scenario.events.length; cut++) {
    const head = encodeEvents(
      dialect,
      dialect.open({ runId: scenario.runId }),
      scenario.events.slice(0, cut),
      beginning,
    )
    const tail = head.over ? '' : encodeEvents(dialect, head.state, scenario.events.slice(cut), beginning).text
    assert.equal(head.text + tail, whole)
  }
}

function isOverAtTheEnd<State>(dialect: Dialect<State>, scenario: Scenario): void {
  const last = scenario.events.length

  assert.equal(encodeEvents(dialect, dialect.open({ runId: scenario.runId }), scenario.events, beginning).over, true)
  assert.equal(textOf(dialect, scenario, { seq: last, index: null }), '')
}
