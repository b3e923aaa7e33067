import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findJsonError } from './json-error.ts'

test('the place and the expectation are those of the first character that does not fit', () => {
  const cases: [string, number, number, string, string][] = [
    ['', 1, 1, 'a value', 'the end of the body'],
    ['{', 1, 2, 'a field name in double quotes', 'the end of the body'],
    ['{"input":}', 1, 10, 'a value', '"}"'],
    ['{"input":"hi"} trailing', 1, 16, 'the end of the body', '"t"'],
    ['{"a":1,}', 1, 8, 'a field name in double quotes', '"}"'],
    ['[1,]', 1, 4, 'a value', '"]"'],
    ['[1 2]', 1, 4, 'a comma or ]', '"2"'],
    ['{"a":1\n "b":2}', 2, 2, 'a comma or }', '"\\""'],
    ["{'a':1}", 1, 2, 'a field name in double quotes', '"\'"'],
    ['{"a" 1}', 1, 6, 'a colon', '"1"'],
    ['{\n  "a": undefined\n}', 2, 8, 'a value', '"u"'],
    ['"a\nb"', 1, 3, 'an escape such as \\n instead of a control character', '"\\n"'],
    ['"open', 1, 6, 'the double quote that ends the text', 'the end of the body'],
    ['"\\u12"', 1, 3, '\\u with four hexadecimal digits', '"u"'],
  ]
  for (const [text, line, column, expected, found] of cases) {
    const error = findJsonError(text)
    assert.deepEqual([error?.line, error?.column, error?.expected, error?.found], [line, column, expected, found], text)
  }
})

test('it agrees with the platform on what is JSON', () => {
  const valid = fc.json()
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', ':', '0', '\\', '['))
    .map(([text, at, put]) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + put + text.slice(place + 1)
    })
  fc.assert(
    fc.property(fc.oneof(valid, broken), (text) => {
      let parses = true
      try {
        JSON.parse(text)
      } catch {
        parses = false
      }
      assert.equal(findJsonError(text) === null, parses, text)
    }),
    { numRuns: 2000 },
  )
})
