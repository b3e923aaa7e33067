import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeeperThan } from './json-depth.ts'

test('levels of objects and lists are counted, and brackets in strings are not', () => {
  assert.equal(isDeeperThan('{"a":[1]}', 2), false)
  assert.equal(isDeeperThan('{"a":[{}]}', 2), true)
  assert.equal(isDeeperThan('["[[[[\\"[[["]', 1), false)
  assert.equal(isDeeperThan('[],[],[]', 1), false)
  assert.equal(isDeeperThan('['.repeat(1_000_000), 100), true)
})
