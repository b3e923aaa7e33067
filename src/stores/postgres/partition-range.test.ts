// Ranges of partitions: any text has its place, and ranges never overlap.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { encodeTime } from 'ulid'
import { boundOf, freeRange, partitionName, rangeOfName, timeEnd, timeOfId } from './partition-range.ts'

const time = fc.integer({ min: 0, max: timeEnd - 1 })
/** Any text, and texts that look like ULIDs for some characters. */
const anyId = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'07801AZz-é~\0'), maxLength: 14 }),
)
const bytes = (text: string) => Buffer.from(text)

describe('the range of a partition', () => {
  test('begins and ends with the times of ULIDs', () => {
    fc.assert(
      fc.property(time, (at) => {
        assert.equal(boundOf(at), encodeTime(at))
        assert.equal(timeOfId(`${encodeTime(at)}0123456789ABCDEF`), at)
      }),
    )
    assert.equal(boundOf(timeEnd), '8000000000')
  })

  test('holds any id between its bounds, as PostgreSQL compares them', () => {
    fc.assert(
      fc.property(anyId, (id) => {
        const at = timeOfId(id)
        if (at === undefined) {
          const low = bytes(id).compare(bytes('0000000000')) < 0
          assert.ok(low || bytes(id).compare(bytes('8')) >= 0, `${JSON.stringify(id)} belongs to no fixed partition`)
        } else {
          assert.ok(bytes(boundOf(at)).compare(bytes(id)) <= 0)
          assert.ok(bytes(at + 1 === timeEnd ? '8' : boundOf(at + 1)).compare(bytes(id)) > 0)
        }
      }),
      { numRuns: 2000 },
    )
  })

  test('is read back from the name of the table', () => {
    fc.assert(
      fc.property(time, time, (a, b) => {
        const range = { from: Math.min(a, b), until: Math.max(a, b) }
        assert.deepEqual(rangeOfName(partitionName(range)), range)
      }),
    )
    assert.deepEqual(rangeOfName(partitionName({ from: 5, until: timeEnd })), { from: 5, until: timeEnd })
    assert.equal(rangeOfName('journal_low'), undefined)
  })

  test('holds its time and never overlaps others, whatever the periods were', () => {
    const wanted = fc.array(fc.tuple(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 1, max: 3000 })))
    fc.assert(
      fc.property(wanted, (steps) => {
        const taken: { from: number; until: number }[] = []
        for (const [at, period] of steps) {
          if (taken.some(({ from, until }) => from <= at && at < until)) continue
          const range = freeRange(taken, at, period)
          assert.ok(range.from <= at && at < range.until)
          assert.ok(taken.every(({ from, until }) => until <= range.from || range.until <= from))
          taken.push(range)
        }
      }),
    )
    assert.deepEqual(freeRange([], timeEnd - 1, 1000), { from: timeEnd - (timeEnd % 1000), until: timeEnd })
  })
})
