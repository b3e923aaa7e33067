import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { wellFormedJson } from './well-formed-json.ts'

/** Texts with halves of pairs, whole pairs, and backslashes that look like escapes. */
const text = fc.string({ unit: fc.constantFrom('a', '\ud83d', '\ude00', '\\', 'u', 'd83d', '\\ud83d', '"', '\n') })

test('JSON keeps its meaning, except that halves of surrogate pairs are replaced', () => {
  fc.assert(
    fc.property(fc.dictionary(text, text), (value) => {
      const read = JSON.parse(wellFormedJson(JSON.stringify(value)))

      const expected = Object.entries(value).map(([key, each]) => [key.toWellFormed(), each.toWellFormed()])
      assert.deepEqual(read, Object.fromEntries(expected))
    }),
  )
})

test('no escape of a half is left', () => {
  fc.assert(
    fc.property(text, (value) => {
      const json = wellFormedJson(JSON.stringify(value))

      assert.equal(JSON.stringify(JSON.parse(json)), json)
      assert.ok(JSON.parse(json).isWellFormed())
    }),
  )
})
