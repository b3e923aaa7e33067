// What changed between two results: one entry for each change, entries of lists matched by
// what identifies them, and a bounded answer for any two values.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonValue } from '../journal/event.ts'
import { diffResults, type SnapshotChange } from './snapshot-diff.ts'

const changesOf = (before: JsonValue, after: JsonValue) => diffResults(before, after).changes

type Case = { what: string; before: JsonValue; after: JsonValue; changes: SnapshotChange[] }

const cases: Case[] = [
  { what: 'equal values', before: { a: 1, b: [1, { c: null }] }, after: { b: [1, { c: null }], a: 1 }, changes: [] },
  {
    what: 'a text',
    before: { title: 'old', same: 1 },
    after: { title: 'new', same: 1 },
    changes: [{ path: 'title', change: 'changed', before: 'old', after: 'new' }],
  },
  {
    what: 'fields that come and go, also with null',
    before: { gone: null },
    after: { come: null },
    changes: [
      { path: 'gone', change: 'removed', before: null },
      { path: 'come', change: 'added', after: null },
    ],
  },
  {
    what: 'an entry at the top of a list that has titles',
    before: { risks: [{ title: 'A', severity: 'low' }] },
    after: {
      risks: [
        { title: 'B', severity: 'high' },
        { title: 'A', severity: 'low' },
      ],
    },
    changes: [{ path: 'risks[title=B]', change: 'added', after: { title: 'B', severity: 'high' } }],
  },
  {
    what: 'a field of an entry, by contact and not by place',
    before: {
      followUps: [
        { contactId: 'c1', priority: 'low' },
        { contactId: 'c2', priority: 'low' },
      ],
    },
    after: {
      followUps: [
        { contactId: 'c2', priority: 'high' },
        { contactId: 'c1', priority: 'low' },
      ],
    },
    changes: [{ path: 'followUps[contactId=c2].priority', change: 'changed', before: 'low', after: 'high' }],
  },
  {
    what: 'an entry that is gone',
    before: { nextActions: [{ action: 'call' }, { action: 'write' }] },
    after: { nextActions: [{ action: 'write' }] },
    changes: [{ path: 'nextActions[action=call]', change: 'removed', before: { action: 'call' } }],
  },
  {
    what: 'a list that becomes empty, and one that was',
    before: { a: [{ id: 1 }], b: [] },
    after: { a: [], b: [{ id: 2 }] },
    changes: [
      { path: 'a[id=1]', change: 'removed', before: { id: 1 } },
      { path: 'b[id=2]', change: 'added', after: { id: 2 } },
    ],
  },
  {
    what: 'texts in a list, by value and not by place',
    before: { lines: ['a', 'b', 'b'] },
    after: { lines: ['b', 'c', 'a'] },
    changes: [
      { path: 'lines[2]', change: 'removed', before: 'b' },
      { path: 'lines[1]', change: 'added', after: 'c' },
    ],
  },
  {
    what: 'two entries with one title are matched by value and place',
    before: {
      risks: [
        { title: 'A', n: 1 },
        { title: 'A', n: 2 },
      ],
    },
    after: {
      risks: [
        { title: 'A', n: 1 },
        { title: 'A', n: 3 },
      ],
    },
    changes: [{ path: 'risks[1].n', change: 'changed', before: 2, after: 3 }],
  },
  {
    what: 'a value of another type',
    before: { a: [1] },
    after: { a: { b: 1 } },
    changes: [{ path: 'a', change: 'changed', before: [1], after: { b: 1 } }],
  },
  {
    what: 'names that every object has',
    before: {},
    after: JSON.parse('{"constructor":1,"__proto__":{"x":1}}') as JsonValue,
    changes: [
      { path: 'constructor', change: 'added', after: 1 },
      { path: '__proto__', change: 'added', after: { x: 1 } },
    ],
  },
]

describe('the difference of two results', () => {
  for (const { what, before, after, changes } of cases) {
    it(`names ${what}`, () => assert.deepEqual(changesOf(before, after), changes))
  }

  it('is empty exactly for equal values, and is the same backwards with before and after swapped', () => {
    const value = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>
    fc.assert(
      fc.property(value, value, (one, other) => {
        assert.deepEqual(changesOf(one, one), [])
        const there = changesOf(one, other)
        assert.equal(there.length, changesOf(other, one).length)
        // JSON has no -0.
        if (JSON.stringify(one) !== JSON.stringify(other) && there.length === 0) {
          assert.deepEqual(reordered(one), reordered(other))
        }
      }),
      { numRuns: 500 },
    )
  })

  it('is bounded in entries and in size, and says that there is more', () => {
    const many = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`k${index}`, index]))
    const counted = diffResults({}, many)
    assert.deepEqual([counted.changes.length, counted.truncated], [500, true])

    const large = { a: 'x'.repeat(400_000), b: 'y'.repeat(400_000) }
    const sized = diffResults({}, large)
    assert.deepEqual([sized.changes.length, sized.truncated], [1, true])
    const huge = diffResults({}, { a: 'x'.repeat(2_000_000) })
    assert.deepEqual([huge.changes.length, huge.truncated], [1, false])
  })

  it('of long lists takes linear work: every entry is serialised a bounded number of times', () => {
    let serialised = 0
    const entry = (index: number) => ({
      value: index,
      toJSON() {
        serialised += 1
        return index
      },
    })
    const list = (from: number) =>
      Array.from({ length: 5000 }, (_, index) => entry(from + index)) as unknown as JsonValue
    diffResults({ list: list(0) }, { list: list(2500) })
    assert.ok(serialised <= 4 * 10_000, String(serialised))
  })

  it('of deep values stops at a depth and names the whole', () => {
    const nest = (inner: JsonValue): JsonValue => {
      let value = inner
      for (let depth = 0; depth < 60; depth++) value = { in: value }
      return value
    }
    const [change, ...more] = changesOf(nest(1), nest(2))
    assert.deepEqual([change?.change, more.length], ['changed', 0])
  })
})

/** Order in lists without identity does not count as a change. */
function reordered(value: JsonValue): JsonValue {
  if (Array.isArray(value))
    return value.map(reordered).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value)
        .map(([name, inner]) => [name, reordered(inner)] as const)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
  }
  return Object.is(value, -0) ? 0 : value
}
