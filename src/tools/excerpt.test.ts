import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { withArguments } from './excerpt.ts'

test('arguments are written as one line, and a long line is cut', () => {
  assert.equal(withArguments({ amount: 5, card: 'x', more: [1, 2] }), ' with amount: 5, card: “x”, more: [1,2]')
  assert.equal(withArguments({}), '')
  const long = withArguments(
    Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`name${index}`, '😀'.repeat(5)])),
  )
  assert.equal(Array.from(long).length, ' with '.length + 300)
  assert.ok(long.endsWith('…'))
})

test('of a hundred thousand fields only the first are written, so that a large result does not block the server', () => {
  let written = 0
  const field = { toJSON: () => (written += 1) } as unknown as JsonValue
  const input = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`field${index}`, field]))

  assert.match(withArguments(input), /^ with field0: 1, field1: 2, .*…$/)
  assert.ok(written < 100, `${written} fields were written`)
})
