import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agrees } from './consent-words.ts'

test('only a plain yes counts as consent', () => {
  for (const yes of [true, 'yes', ' OK! ', 'Confirmed .', '好的。', { confirmed: true }, { value: true }]) {
    assert.equal(agrees(yes), true, JSON.stringify(yes))
  }
  for (const no of [false, null, 1, '', 'no', 'yes, but not now', 'yesyes', { confirmed: 'true' }, ['yes']]) {
    assert.equal(agrees(no), false, JSON.stringify(no))
  }
})

test('a reply of any length is judged in one pass', () => {
  // Blanks on both sides of an optional sign: a pattern that backtracks needs hours for these.
  assert.equal(agrees(`yes${' '.repeat(1_000_000)}x`), false)
  assert.equal(agrees(`${' '.repeat(1_000_000)}yes${' '.repeat(1_000_000)}`), true)
})
