import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeHints, encodeHints } from './hint-message.ts'

const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
const hints = fc.record({
  announced: fc.array(fc.tuple(id, fc.nat()), { maxLength: 400 }).map((entries) => new Map(entries)),
  signalled: fc.array(fc.option(id), { maxLength: 100 }).map((ids) => new Set(ids)),
  changed: fc.array(id, { maxLength: 100 }).map((ids) => new Set(ids)),
})

test('any hints arrive as they were sent, in messages that PostgreSQL takes', () => {
  fc.assert(
    fc.property(id, fc.nat(), hints, (from, at, given) => {
      const announced = new Map<string, number>()
      const signalled = new Set<string | null>()
      const changed = new Set<string>()
      for (const text of encodeHints(from, at, given)) {
        assert.ok(Buffer.byteLength(text) < 8000)
        const message = decodeHints(text)
        assert.ok(message !== undefined)
        assert.deepEqual([message.from, message.at], [from, at])
        for (const [runId, seq] of message.announced) announced.set(runId, seq)
        for (const runId of message.signalled) signalled.add(runId)
        for (const owner of message.changed) changed.add(owner)
      }
      assert.deepEqual(announced, given.announced)
      assert.deepEqual(signalled, given.signalled)
      assert.deepEqual(changed, given.changed)
    }),
    { numRuns: 200 },
  )
})

test('nothing to say is no message', () => {
  assert.deepEqual(encodeHints('n', 1, { announced: new Map(), signalled: new Set(), changed: new Set() }), [])
})

test('what is not a message of hints is ignored, whatever it is', () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void decodeHints(text)))
  assert.equal(decodeHints(`{"from":"n","at":1,"announced":{},"signalled":["${'x'.repeat(8000)}"]}`), undefined)
  const odd = decodeHints('{"from":"n","at":1,"announced":{"r":"1","s":2,"":3},"signalled":[1,"",null,{}]}')
  assert.deepEqual(odd?.announced, new Map([['s', 2]]))
  assert.deepEqual(odd?.signalled, new Set([null]))
})
