// Calls that wait for each other: none is lost or repeated, their order stays, and their number is bounded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetricCalls } from './metric-calls.ts'

test('calls wait until the metrics are read, and are made once, in their order', () => {
  const calls = new MetricCalls()
  const made: number[] = []
  for (const number of [1, 2, 3]) calls.add(() => made.push(number))
  assert.deepEqual(made, [])

  calls.flush()
  calls.flush()
  assert.deepEqual(made, [1, 2, 3])
})

test('many calls do not wait for a reader', () => {
  const calls = new MetricCalls()
  let made = 0
  for (let count = 0; count < 10_000; count += 1) calls.add(() => (made += 1))
  assert.ok(made > 9000, `${made} of 10000`)

  calls.flush()
  assert.equal(made, 10_000)
})
