import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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
