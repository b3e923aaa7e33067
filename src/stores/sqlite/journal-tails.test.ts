import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JournalTails } from './journal-tails.ts'

test('the tail of a run is its rows in order, until they are folded', () => {
  const tails = new JournalTails()
  tails.add('r', 1, 1, 2)
  tails.add('other', 2, 1, 1)
  tails.add('r', 3, 3, 3)
  tails.add('r', 4, 4, 9)

  assert.deepEqual(tails.refs('r'), [1, 1, 2, 3, 3, 3, 4, 4, 9])
  assert.deepEqual([tails.lastSeq('r'), tails.lastSeq('other'), tails.lastSeq('nobody')], [9, 1, 0])

  tails.folded('r', 2)
  assert.deepEqual(tails.refs('r'), [3, 3, 3, 4, 4, 9])
  // Half of a row is still read from the tail.
  tails.folded('r', 5)
  assert.deepEqual(tails.refs('r'), [4, 4, 9])
  assert.equal(tails.lastSeq('r'), 9)
  tails.folded('r', 9)
  assert.deepEqual([tails.refs('r'), tails.lastSeq('r')], [[], 0])
  tails.folded('nobody', 1)
  assert.deepEqual(tails.refs('other'), [2, 1, 1])
})

test('rows that were merged are one row, between others that are not', () => {
  const tails = new JournalTails()
  for (const id of [1, 2, 4, 5, 7]) tails.add('r', id, id * 10, id * 10 + 9)
  tails.add('other', 3, 1, 1)

  tails.merged('r', 2, 20, 59)
  tails.merged('nobody', 9, 1, 2)

  assert.deepEqual(tails.refs('r'), [1, 10, 19, 2, 20, 59, 7, 70, 79])
  tails.folded('r', 59)
  assert.deepEqual(tails.refs('r'), [7, 70, 79])
  assert.deepEqual(tails.refs('other'), [3, 1, 1])
})
