// What counts as JSON in an event, and that checking it reads each value once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { json } from './json-value.ts'

test('every JSON value fits, and its copy is equal', () => {
  for (const value of [null, true, 0, -1.5, '', 'a', [], [1, [null]], {}, { a: { b: ['c'] }, constructor: 1 }]) {
    assert.deepEqual(json.parse(value), value)
  }
  assert.deepEqual(json.parse(runInNewContext('({ a: [1] })')), { a: [1] })
  const given = { list: [1] }
  assert.notEqual(json.parse(given), given)
})

test('what JSON cannot hold does not fit, at any depth', () => {
  const cycle: unknown[] = []
  cycle.push(cycle)
  for (const value of [undefined, Number.NaN, Infinity, 1n, () => 1, Symbol('a'), new Date(), new Map(), cycle]) {
    assert.equal(json.safeParse(value).success, false)
    assert.equal(json.safeParse({ list: [value] }).success, false)
  }
  assert.equal(json.safeParse([1, , 2]).success, false) // oxlint-disable-line no-sparse-arrays
})

test('a field named __proto__ is left out and changes nothing', () => {
  const copy = json.parse(JSON.parse('{"__proto__":{"polluted":true},"a":1}')) as Record<string, unknown>

  assert.deepEqual(Object.keys(copy), ['a'])
  assert.equal(copy['polluted'], undefined)
})

test('a large value is read once, so that it does not block the server', () => {
  let reads = 0
  const entry = {
    get a() {
      reads += 1
      return []
    },
  }
  json.parse(Array.from({ length: 1_000 }, () => entry))

  assert.equal(reads, 1_000)
})
