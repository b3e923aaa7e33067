// A reader may change its format whenever it comes back: it gets exactly the rest of the run in the
// new format. Cursors count events, so they mean the same in every format.

import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import { type Cursor, parseCursor } from '../../src/dialects/cursor.ts'
import { type Dialect, encodeEvents, endsStream } from '../../src/dialects/dialect.ts'
import { formatDialects } from '../../src/http/formats.ts'
import { framesOf } from '../contracts/dialect-contract.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { openStream } from '../support/sse.ts'
import { calls, runIdOf, says, sharedTestServer, someone, toolState } from '../support/test-server.ts'

const formats = Object.entries(formatDialects)

/** All frames of the events after `after` up to `through`. */
function between(dialect: Dialect, scenario: Scenario, after: number, through: number): string {
  return framesOf(dialect, scenario)
    .filter(({ seq }) => seq > after && seq <= through)
    .map(({ text }) => text)
    .join('')
}

/** What a reader gets that comes with `cursor` and leaves after the event `through`, or at the end of the stream. */
function read(dialect: Dialect, { runId, events }: Scenario, cursor: Cursor, through: number) {
  const last = events.find((event) => event.seq > cursor.seq && (event.seq >= through || endsStream(dialect, event)))
  const seq = last?.seq ?? events.length
  const { text } = encodeEvents(dialect, dialect.open({ runId }), events.slice(0, seq), cursor)
  return { text, seq }
}

describe('a reader that changes its format at every return', () => {
  const aFormat = fc.constantFrom(...formats)

  it('gets each event once, in the format of that time, whatever the scenario and the cuts are', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...scenarios),
        fc.array(fc.tuple(aFormat, fc.integer({ min: 1, max: 6 })), { minLength: 1, maxLength: 30 }),
        aFormat,
        (scenario, visits, [, lastDialect]) => {
          let seq = 0
          for (const [[name, dialect], length] of visits) {
            const part = read(dialect, scenario, { seq, index: null }, seq + length)
            assert.equal(part.text, between(dialect, scenario, seq, part.seq), `${name} after ${seq}`)
            seq = part.seq
          }
          // Then it stays until the run has ended.
          while (seq < scenario.events.length) {
            const part = read(lastDialect, scenario, { seq, index: null }, scenario.events.length)
            assert.equal(part.text, between(lastDialect, scenario, seq, part.seq))
            seq = part.seq
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('misses nothing if it leaves in the middle of an event, and comes back with the event before', () => {
    for (const scenario of scenarios) {
      for (const [, first] of formats) {
        for (const { address } of framesOf(first, scenario)) {
          const { seq, index } = parseCursor(address)
          if (index === null) continue
          for (const [name, second] of formats) {
            const part = read(second, scenario, { seq: seq - 1, index: null }, scenario.events.length)
            assert.equal(part.text, between(second, scenario, seq - 1, part.seq), `${name} after ${address}`)
          }
        }
      }
    }
  })
})

describe('on the real server', () => {
  const server = sharedTestServer()

  /** Without keep-alives, which belong to a connection. */
  const tail = async (runId: string, user: string, format: string, after: number) => {
    const query = `userId=${user}&format=${format}&after=${after}`
    const stream = await openStream(`${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?${query}`)
    await stream.ended()
    return { status: stream.status, text: stream.text() }
  }

  test('every format gives exactly the rest after every event of a run that asked a person', async () => {
    const user = someone()
    const script = [calls(['remember_note', { text: 'tea' }], ['current_time', {}]), says('Not', 'ed.')]
    await server.provider.script(script, user)
    const live = await server.chat(user, user)
    const { confirmationId } = (await live.waitFor(toolState('awaiting_input'))).json.data
    await server.reaches(user, runIdOf(live), 'awaiting_input')
    await server.call('POST', `/v1/tool-confirmations/${String(confirmationId)}/confirm`, { user })
    await live.ended()
    const runId = runIdOf(live)
    const lastSeq = Number(live.frames.at(-1)?.id)

    const parkedAt = new Set<number>()
    for (const [format, dialect] of formats) {
      const rest: string[] = []
      for (let seq = 0; seq <= lastSeq; seq++) {
        const { status, text } = await tail(runId, user, format, seq)
        assert.equal(status, seq === lastSeq ? 204 : 200, `${format} after ${seq}`)
        rest.push(text)
      }
      // With one event less to send, the beginning is missing and nothing else is different.
      const breaks = rest.flatMap((text, seq) => (seq === 0 || rest[seq - 1]?.endsWith(text) === true ? [] : [seq]))
      // Only a stream that ends at the decision is followed by another one.
      assert.equal(breaks.length, dialect.atDecision === 'parks' ? 1 : 0, `${format}: ${breaks.join()}`)
      for (const seq of breaks) parkedAt.add(seq)
    }
    assert.equal(parkedAt.size, 1, 'all formats that end at the decision end at the same event')
  })
})
