import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { RunCache } from './run-cache.ts'

const fenced = (epoch: number, lastSeq: number) => ({ epoch, lastSeq, conversationId: null, turn: 1 })

describe('what the writer remembers of a run', () => {
  test('is undone with the transaction: changes, additions and removals, the last first', () => {
    const cache = new RunCache()
    const kept = cache.add('kept', fenced(1, 5))
    const removed = cache.add('removed', fenced(1, 7))
    cache.commit()

    cache.remember('kept', kept)
    kept.lastSeq = 6
    cache.remember('kept', kept)
    kept.lastSeq = 7
    cache.remove('removed')
    cache.add('new', fenced(1, 1))
    cache.add('removed', fenced(2, 9))
    cache.rollbackTo(0)

    assert.equal(cache.get('kept'), kept, 'whoever holds the entry sees the undo')
    assert.deepEqual([kept.lastSeq, cache.get('new')], [5, undefined])
    assert.equal(cache.get('removed'), removed)
    assert.deepEqual([removed.epoch, removed.lastSeq], [1, 7])
  })

  test('is undone up to a mark, and what was committed is not undone', () => {
    const cache = new RunCache()
    const entry = cache.add('r', fenced(1, 1))
    cache.commit()
    assert.equal(cache.mark(), 0)
    cache.remember('r', entry)
    entry.lastSeq = 2
    const mark = cache.mark()
    cache.remember('r', entry)
    entry.lastSeq = 3

    cache.rollbackTo(mark)
    assert.equal(entry.lastSeq, 2)
    cache.rollbackTo(0)
    assert.equal(entry.lastSeq, 1)
    assert.equal(cache.get('r'), entry)
  })

  test('is copied once after each mark, however often it changes', () => {
    const cache = new RunCache()
    const entry = cache.add('r', fenced(1, 1))
    cache.commit()
    const change = (lastSeq: number) => {
      cache.remember('r', entry)
      entry.lastSeq = lastSeq
    }
    for (const lastSeq of [2, 3, 4]) change(lastSeq)
    assert.equal(cache.changed().length, 1)
    const mark = cache.mark()
    for (const lastSeq of [5, 6]) change(lastSeq)
    assert.equal(cache.changed().length, 2)

    cache.rollbackTo(mark)
    assert.equal(entry.lastSeq, 4)
    for (const lastSeq of [7, 8]) change(lastSeq)
    cache.rollbackTo(0)
    assert.equal(entry.lastSeq, 1)
    for (const lastSeq of [9, 10]) change(lastSeq)
    cache.rollbackTo(0)
    assert.equal(entry.lastSeq, 1, 'after a rollback it is copied again')

    change(11)
    cache.commit()
    change(12)
    cache.rollbackTo(0)
    assert.equal(entry.lastSeq, 11, 'after a commit it is copied again')
  })

  test('is the same after a rollback, with any changes, additions, removals and marks', () => {
    const names = ['a', 'b', 'c']
    const step = fc.record({
      action: fc.constantFrom('change', 'add or remove', 'mark', 'rollback', 'commit'),
      name: fc.constantFrom(...names),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const cache = new RunCache()
        // What the cache must hold, at each mark and at the last commit, which is the first of these.
        const snapshot = () => new Map(names.map((name) => [name, cache.get(name)?.lastSeq]))
        let marks = [{ mark: 0, held: snapshot() }]
        for (const [number, { action, name }] of steps.entries()) {
          const entry = cache.get(name)
          if (action === 'change' && entry !== undefined) {
            cache.remember(name, entry)
            entry.lastSeq = 100 + number
          } else if (action === 'add or remove') {
            if (entry === undefined) cache.add(name, fenced(1, number))
            else cache.remove(name)
          } else if (action === 'mark') marks.push({ mark: cache.mark(), held: snapshot() })
          else if (action === 'rollback') {
            const { mark, held } = marks.at(-1) as (typeof marks)[number]
            cache.rollbackTo(mark)
            assert.deepEqual(snapshot(), held)
            if (marks.length > 1) marks.pop()
          } else if (action === 'commit') {
            cache.commit()
            marks = [{ mark: 0, held: snapshot() }]
          }
        }
      }),
    )
  })

  test('starts with nothing unfolded, and removing what is not there changes nothing', () => {
    const cache = new RunCache()

    const { epoch, lastSeq, foldedSeq, tail, tailRows, unwritten, unwrittenAppends } = cache.add('r', fenced(3, 4))
    assert.deepEqual([epoch, lastSeq, foldedSeq], [3, 4, 4])
    assert.deepEqual([tail, tailRows, unwritten, unwrittenAppends], ['', 0, '', 0])
    const mark = cache.mark()
    cache.remove('nobody')
    assert.equal(cache.mark(), mark)
    assert.deepEqual(
      [...cache.entries()].map(([runId]) => runId),
      ['r'],
    )
  })
})
