import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from './event.ts'
import { decodeEvent, encodeEvent } from './event-codec.ts'
import { EventPageBuilder } from './event-page-builder.ts'
import { EventDelta, type JsonDelta, StoredDeltaView, type StoredEvent } from './stored-events.ts'

const delta = (seq: number, text: string, messageId = 'm'): RunEvent => ({
  seq,
  at: 1_790_000_000_000 + seq,
  attempt: 1,
  type: 'text.delta',
  data: { messageId, text },
})

type Row = { lastSeq: number; body: string }

function pageOf(rows: readonly Row[], after = 0, limit = 1000) {
  const builder = new EventPageBuilder(after, limit)
  for (const { body, lastSeq } of rows) if (!builder.add(body, lastSeq)) break
  return builder.page(rows.at(-1)?.lastSeq ?? 0)
}

/** The events of all rows, each line decoded by itself. */
function plainlyRead(rows: readonly Row[]): RunEvent[] {
  const events: RunEvent[] = []
  for (const { body, lastSeq } of rows) {
    for (const line of body.split('\n')) {
      const event = decodeEvent(line)
      if (event !== null && event.seq > (events.at(-1)?.seq ?? 0) && event.seq <= lastSeq) events.push(event)
    }
  }
  return events
}

/** What a dialect gets of each text delta. */
function deltasAsSent(events: readonly StoredEvent[]) {
  const sent: JsonDelta[] = []
  const add = ({ seq, at, messageId, textJson }: JsonDelta) => sent.push({ seq, at, messageId, textJson })
  for (const event of events) {
    if (event.type === 'text.delta') add(new EventDelta(event))
    else if (event.type === 'stored.deltas')
      for (const delta = new StoredDeltaView(event); delta.index < event.length; delta.index++) add(delta)
  }
  return sent
}

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constant('\ud800"\\\n\u2028\u0001'))

/** Changes to a line that no writer of ours makes: a damaged disk or another program. */
const change = fc.constantFrom<(line: string) => string>(
  (line) => line.replace('"text":"', '"text":"\\u0041\\/'),
  (line) => line.replace('"text":"', '"text":"\u0001'),
  (line) => line.replace('"text":"', '"text":"\\x'),
  (line) => line.replace('"text":"', '"text":"a"b'),
  (line) => line.replace('"text":', '"text": '),
  (line) => line.replace('"text":"', '"text":1,"more":"'),
  (line) => line.replace('"seq":', '"seq":0'),
  (line) => line.replace('"seq":', '"seq":1'),
  (line) => line.replace('"at":1', '"at":-1'),
  (line) => line.replace('"at":1', '"at":99999'),
  (line) => line.replace('"attempt":1', '"attempt":1.5'),
  (line) => line.replace('"messageId":"', '"messageId":"\\n'),
  (line) => line.replace('"messageId":"m', '"messageId":"'),
  (line) => line.replace('text.delta', 'no.such.type'),
  (line) => line.slice(0, -1),
  (line) => `${line} `,
  (line) => `${line}\n${line}`,
  () => '',
)

test('a page has exactly the events that its lines decode to, whatever the lines look like', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.array(
          fc.record({
            text,
            messageId: fc.constantFrom('m', 'mm', 'n', 'a"b'),
            change: fc.option(change, { freq: 4 }),
          }),
          { minLength: 1, maxLength: 8 },
        ),
        { minLength: 1, maxLength: 4 },
      ),
      fc.nat(12),
      (plan, limit) => {
        let seq = 0
        const rows = plan.map((lines): Row => {
          const body = lines.map((line) => {
            seq += 1
            const encoded = encodeEvent(delta(seq, line.text, line.messageId))
            return line.change === null ? encoded : line.change(encoded)
          })
          return { body: body.join('\n'), lastSeq: seq }
        })
        const expected = plainlyRead(rows)

        const page = pageOf(rows)
        assert.deepEqual(page.events, expected)
        assert.deepEqual(deltasAsSent(page.stored ?? page.events), deltasAsSent(expected))
        assert.equal(page.skipped, seq - expected.length)
        assert.equal(page.nextAfter, seq)

        const paged: RunEvent[] = []
        for (let after = 0; after < seq;) {
          const next = pageOf(
            rows.filter(({ lastSeq }) => lastSeq > after),
            after,
            limit + 1,
          )
          assert.ok(next.events.length <= limit + 1)
          paged.push(...next.events)
          after = next.nextAfter
        }
        assert.deepEqual(paged, expected)
      },
    ),
    { numRuns: 300 },
  )
})

test('deltas that our writer stored are not decoded, unless they are long', () => {
  const short = pageOf([{ body: [delta(1, 'a\n"'), delta(2, '中文')].map(encodeEvent).join('\n'), lastSeq: 2 }])
  assert.deepEqual(
    short.stored?.map(({ type }) => type),
    ['stored.deltas'],
  )
  // Longer lines are decoded.
  const long = delta(1, '\n'.repeat(500_000))
  assert.deepEqual(pageOf([{ body: encodeEvent(long), lastSeq: 1 }]), {
    events: [long],
    skipped: 0,
    nextAfter: 1,
    atHead: true,
  })
})
