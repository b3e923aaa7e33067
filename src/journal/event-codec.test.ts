// The lines of the journal: every type of event can be written to disk and read back, and no
// content of a file makes a read throw.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { anyEvent, anyText } from '../../test/support/event-arbitraries.ts'
import { isoTime } from '../kit/clock.ts'
import { checkEvent, decodeEvent, encodeEvent } from './event-codec.ts'
import type { NewEvent, RunEvent } from './event.ts'

const delta: RunEvent = { seq: 1, at: 1, attempt: 1, type: 'text.delta', data: { messageId: 'm', text: 'x' } }

describe('a stored line', () => {
  it('gives back any event that fits the vocabulary, and is one line', () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        const line = encodeEvent(event)

        assert.equal(line.includes('\n'), false)
        assert.deepEqual(decodeEvent(line), event)
      }),
      { numRuns: 1000 },
    )
  })

  it('of a text delta is what JSON would write, whatever its ids and its text are', () => {
    fc.assert(
      fc.property(anyText, anyText, (messageId, text) => {
        const event: RunEvent = { seq: 1, at: 1, attempt: 1, type: 'text.delta', data: { messageId, text } }

        assert.deepEqual(JSON.parse(encodeEvent(event)), JSON.parse(JSON.stringify(event)))
      }),
    )
  })

  it('that is no event, or none any more, is dirty and never an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          fc.json(),
          fc.json().map((json) => `{"seq":1,"at":1,"attempt":1,"type":"tool.done","data":${json}}`),
        ),
        (line) => {
          const event = decodeEvent(line)

          if (event !== null) assert.doesNotThrow(() => checkEvent(event))
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('that was cut off or changed by a bit is dirty or still an event, never an exception', () => {
    fc.assert(
      fc.property(anyEvent, fc.nat(), fc.nat(127), (event, where, code) => {
        const line = encodeEvent(event)
        const at = where % line.length

        assert.equal(decodeEvent(line.slice(0, at)), null)
        decodeEvent(`${line.slice(0, at)}${String.fromCharCode(code)}${line.slice(at + 1)}`)
      }),
    )
  })

  it('with numbers that are no valid count or date is dirty', () => {
    const line = (fields: string) => decodeEvent(`{${fields},"type":"text.delta","data":{"messageId":"m","text":"x"}}`)

    assert.deepEqual(line('"seq":1,"at":1,"attempt":1'), delta)
    for (const fields of [
      '"seq":0,"at":1,"attempt":1',
      '"seq":1.5,"at":1,"attempt":1',
      '"seq":"1","at":1,"attempt":1',
      '"seq":9007199254740993,"at":1,"attempt":1',
      '"seq":1,"at":"1","attempt":1',
      '"seq":1,"at":1e999,"attempt":1',
      '"seq":1,"at":8640000000000001,"attempt":1',
      '"seq":1,"at":1',
    ]) {
      assert.equal(line(fields), null, fields)
    }
    assert.doesNotThrow(() => isoTime(line('"seq":1,"at":8640000000000000,"attempt":1')?.at ?? Number.NaN))
  })

  it('of a type that this version does not know, or that only looks like one, is dirty', () => {
    for (const type of ['"run.invented"', '"toString"', '"__proto__"', '7', 'null']) {
      assert.equal(decodeEvent(`{"seq":1,"at":1,"attempt":1,"type":${type},"data":{}}`), null, type)
    }
  })

  it('that is nested deeper than any stack is dirty', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`

    assert.equal(
      decodeEvent(
        `{"seq":1,"at":1,"attempt":1,"type":"tool.started","data":{"callId":"c","idempotencyKey":"k","input":${deep}}}`,
      ),
      null,
    )
  })
})

describe('the check before writing', () => {
  it('lets every event of the vocabulary through', () => {
    fc.assert(fc.property(anyEvent, (event) => assert.doesNotThrow(() => checkEvent(event))))
  })

  it('refuses what does not fit, and says which event and where', () => {
    const wrong = { type: 'tool.started', data: { callId: '', input: {}, idempotencyKey: 'k' } } as NewEvent

    assert.throws(
      () => checkEvent(wrong),
      (error: { code: string; details: { type: string; issues: string[] } }) => {
        assert.equal(error.code, 'event_invalid')
        assert.equal(error.details.type, 'tool.started')
        assert.match(error.details.issues.join(), /^callId: /)
        return true
      },
    )
    assert.throws(() => checkEvent({ type: 'text.delta', data: { messageId: 'm' } } as NewEvent), {
      code: 'event_invalid',
    })
    assert.throws(() => checkEvent({ type: 'run.invented', data: {} } as unknown as NewEvent), {
      code: 'event_invalid',
    })
  })
})
