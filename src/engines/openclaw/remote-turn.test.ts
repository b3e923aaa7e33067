// The fold of one remote run, without a socket: whatever is lost, repeated or read again from
// the history, the parts tell the story once and in order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { TurnPart } from '../engine.ts'
import { readFrame } from './gateway-frames.ts'
import { type HistoryItem, readRemoteHistory } from './remote-history.ts'
import { RemoteTurn } from './remote-turn.ts'
import { sessionKeyOf } from './session-key.ts'

type Beat = { say: string[] } | { call: string }
type Event = { event: string; payload: Record<string, unknown>; beat: number; last: boolean }

const words = fc.array(fc.constantFrom('a', 'b', ' c', ' d e', '\nf', '.'), { minLength: 1, maxLength: 5 })
const story = fc
  .array(
    fc.oneof(
      words.map((say) => ({ say: [`w${say[0] ?? ''}`, ...say] })),
      fc.constant({ call: '' }),
    ),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((beats): Beat[] => beats.map((beat, index) => ('call' in beat ? { call: `c${index}` } : { say: beat.say })))

/** The events of a story, numbered with holes as the gateway does it. */
function eventsOf(beats: Beat[]): Event[] {
  let seq = 0
  return beats.flatMap((beat, index): Event[] => {
    const event = (stream: string, data: object, last: boolean): Event => {
      seq += 2
      return { event: 'agent', payload: { runId: 'r', seq, ts: seq * 10, stream, data }, beat: index, last }
    }
    if ('call' in beat) {
      return [
        event('tool', { phase: 'start', toolCallId: beat.call, name: 'search', args: {} }, false),
        event('tool', { phase: 'result', toolCallId: beat.call, result: { content: 'ok' } }, true),
      ]
    }
    return beat.say.map((_, at) => {
      const text = beat.say.slice(0, at + 1).join('')
      return event('assistant', { text: text.trimEnd(), itemId: `i${index}` }, at === beat.say.length - 1)
    })
  })
}

/** The history has a message when it is complete, and a call when it has its result. */
function historyOf(beats: Beat[]): HistoryItem[] {
  const events = eventsOf(beats)
  return beats.flatMap((beat, index): HistoryItem[] =>
    'say' in beat
      ? [
          {
            type: 'text',
            text: `${beat.say.join('')}\n`,
            at: Number(events.findLast((event) => event.beat === index)?.payload['ts']) + 5,
          },
        ]
      : [
          { type: 'call', callId: beat.call, name: 'search', input: {} },
          { type: 'result', callId: beat.call, text: 'ok', isError: false },
        ],
  )
}

const textOf = (parts: TurnPart[]) => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Texts are joined by calls or by a blank line. */
function expectedOf(beats: Beat[]): string {
  return beats
    .map((beat, index) => {
      if ('call' in beat) return ''
      const before = beats[index - 1]
      return (before !== undefined && 'say' in before ? '\n\n' : '') + beat.say.join('').trim()
    })
    .join('')
}

function check(parts: TurnPart[], beats: Beat[]): void {
  assert.equal(textOf(parts), expectedOf(beats))
  const ids = beats.flatMap((beat) => ('call' in beat ? [beat.call] : []))
  const of = (type: string) => parts.flatMap((part) => (part.type === type && 'callId' in part ? [part.callId] : []))
  assert.deepEqual(of('tool-called'), ids)
  assert.deepEqual(of('tool-done'), ids)
}

test('events that come twice, and late copies of old ones, change nothing', () => {
  fc.assert(
    fc.property(story, fc.array(fc.nat(50), { maxLength: 20 }), (beats, copies) => {
      const events = eventsOf(beats)
      const disturbed = events.flatMap((event, index) => [
        event,
        ...(copies.includes(index) ? events.slice(0, index + 1) : []),
      ])
      const turn = new RemoteTurn('r')
      check(
        disturbed.flatMap(({ event, payload }) => turn.event(event, payload, true).parts),
        beats,
      )
    }),
  )
})

test('events may be lost at any place, if the history is read before the next one', () => {
  fc.assert(
    fc.property(story, fc.array(fc.boolean(), { maxLength: 40 }), (beats, lost) => {
      const turn = new RemoteTurn('r')
      const parts: TurnPart[] = []
      let hasGap = false
      for (const [index, { event, payload, beat, last }] of eventsOf(beats).entries()) {
        if (lost[index] === true) {
          hasGap = true
          continue
        }
        // The gateway wrote the history before it sent this event.
        if (hasGap) parts.push(...turn.history(historyOf(beats.slice(0, last ? beat + 1 : beat))))
        hasGap = false
        parts.push(...turn.event(event, payload, true).parts)
      }
      parts.push(...turn.history(historyOf(beats)))
      check(parts, beats)
    }),
  )
})

test('a fold that begins anew with the history and goes on with events tells the whole story', () => {
  fc.assert(
    fc.property(story, fc.nat(30), (beats, at) => {
      const events = eventsOf(beats)
      const cut = events[Math.min(at, events.length - 1)]
      const done = cut === undefined ? 0 : cut.beat
      const turn = new RemoteTurn('r')
      const parts = turn.history(historyOf(beats.slice(0, done)))
      for (const { event, payload, beat } of events)
        if (beat >= done) parts.push(...turn.event(event, payload, true).parts)
      check(parts, beats)
    }),
  )
})

test('events of other runs, and of no known shape, are ignored', () => {
  fc.assert(
    fc.property(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (event, payload) => {
      const turn = new RemoteTurn('r')
      assert.deepEqual(turn.event(event, payload, true).parts, [])
    }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom('agent', 'chat', 'session.tool', 'exec.approval.requested'),
      fc.record({
        runId: fc.constant('r'),
        seq: fc.jsonValue(),
        stream: fc.constantFrom('assistant', 'tool'),
        data: fc.jsonValue(),
      }),
      (event, payload) => {
        const { parts } = new RemoteTurn('r').event(event, payload, true)
        for (const part of parts) assert.ok(part.type !== 'text' || part.text !== '')
      },
    ),
  )
})

test('without numbers of the connection, a hole in the numbers of a run is a gap', () => {
  const turn = new RemoteTurn('r')
  const said = (seq: number) => ({ runId: 'r', seq, stream: 'assistant', data: { text: 'x' } })
  assert.equal(turn.event('agent', said(1), false).gap, false)
  assert.equal(turn.event('agent', said(2), false).gap, false)
  assert.equal(turn.event('agent', said(4), false).gap, true)
  assert.equal(turn.event('agent', said(9), true).gap, false)
})

test('a message that is replaced is shown again from its beginning', () => {
  const turn = new RemoteTurn('r')
  const say = (seq: number, text: string) =>
    turn.event('agent', { runId: 'r', seq, stream: 'assistant', data: { text, itemId: 'i' } }, true).parts
  assert.equal(textOf([...say(1, 'Hello'), ...say(2, 'Good day')]), 'Hello\n\nGood day')
})

test('any payload is a history', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      const history = readRemoteHistory(payload, 'r', 'r')
      assert.equal(history.isKnown, false)
    }),
  )
  const queued = { pendingInputs: { items: [{ id: '1', runId: 'r', state: 'queued' }] } }
  assert.equal(readRemoteHistory(queued, 'r', 'r').isActive, true)
  const cancelled = { pendingInputs: { items: [{ id: '1', runId: 'r', state: 'cancelled' }] } }
  assert.equal(readRemoteHistory(cancelled, 'r', 'r').isActive, false)
})

test('any text is a frame or none', () => {
  fc.assert(fc.property(fc.string(), (text) => void readFrame(text)))
  fc.assert(fc.property(fc.json(), (text) => void readFrame(text)))
  assert.equal(readFrame(`{"type":"event","event":"x","payload":"${'y'.repeat(27 * 1024 * 1024)}"}`), undefined)
})

test('two conversations never share a session, however their ids are spelled', () => {
  const ids = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('a', 'A', 'a:b', 'a-b', 'a b', 'ä', ' a'))
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      fc.pre(one !== other)
      assert.notEqual(sessionKeyOf(one, 'r').toLowerCase(), sessionKeyOf(other, 'r').toLowerCase())
    }),
  )
  assert.equal(sessionKeyOf('abc-1', 'r'), 'conv:abc-1')
  assert.equal(sessionKeyOf(null, 'run-1'), 'run:run-1')
  assert.match(sessionKeyOf('agent:main:x', 'r'), /^conv:agent-main-x-[0-9a-f]{32}$/)
})
