import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeeperThan, isValueDeeperThan, valuesIn, valuesInValue } from './json-depth.ts'

test('levels of objects and lists are counted, and brackets in strings are not', () => {
  assert.equal(isDeeperThan('{"a":[1]}', 2), false)
  assert.equal(isDeeperThan('{"a":[{}]}', 2), true)
  assert.equal(isDeeperThan('["[[[[\\"[[["]', 1), false)
  assert.equal(isDeeperThan('[],[],[]', 1), false)
  assert.equal(isDeeperThan('['.repeat(1_000_000), 100), true)
})

test('a value of any depth is measured without recursion', () => {
  let deep: unknown = 1
  for (let level = 0; level < 1_000_000; level += 1) deep = [deep]

  assert.equal(isValueDeeperThan(deep, 100), true)
  assert.equal(isValueDeeperThan({ a: [1] }, 2), false)
  assert.equal(isValueDeeperThan({ a: [{}] }, 2), true)
})

test('values are counted up to a limit, and commas and brackets in strings are not', () => {
  assert.equal(valuesIn('1', 10), 1)
  assert.equal(valuesIn('{"a":[1,2],"b":{}}', 10), 6)
  assert.equal(valuesIn('["a,b,c","[[{\\",,,"]', 10), 3)
  assert.equal(valuesIn('[],'.repeat(1_000_000), 100), 101)
})

test('the values in a value are counted up to a limit, wherever they are', () => {
  let deep: unknown = 1
  for (let level = 0; level < 1_000_000; level += 1) deep = [deep]

  assert.equal(valuesInValue(1, 10), 1)
  assert.equal(valuesInValue({ a: [1, null], b: {} }, 10), 5)
  assert.equal(valuesInValue([[1, 2], { a: [3] }], 7), 7)
  assert.equal(valuesInValue([[1, 2], { a: [3] }], 6), 7)
  assert.equal(valuesInValue(deep, 100), 101)
})
