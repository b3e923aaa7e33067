import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonString } from './json-string.ts'

test('the JSON of a text is that of JSON.stringify, for each character and for any text', () => {
  for (let code = 0; code <= 0xffff; code += 1) {
    const text = String.fromCharCode(code)
    if (jsonString(text) !== JSON.stringify(text)) assert.fail(`U+${code.toString(16)}`)
  }
  const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }))
  fc.assert(fc.property(text, (text) => assert.equal(jsonString(text), JSON.stringify(text))))
})
