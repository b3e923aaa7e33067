import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { checkJsonSize } from './json-limits.ts'

const limits = { depth: 4, values: 20, entries: 5, keyChars: 6 }

function refusal(text: string): string | null {
  try {
    checkJsonSize(text, limits)
    return null
  } catch (error) {
    assert.ok(error instanceof AppError)
    assert.equal(error.code, 'body_too_complex')
    return error.message
  }
}

describe('the size of a JSON text', () => {
  test('a text at each limit passes, and one more is refused with the limit in the sentence', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    const list = (entries: number) => `[${Array.from({ length: entries }, () => '1').join(',')}]`
    const object = (entries: number) => `{${Array.from({ length: entries }, (_, at) => `"k${at}":1`).join(',')}}`
    assert.equal(refusal(nested(4)), null)
    assert.match(String(refusal(nested(5))), /more than 4 levels/)
    assert.equal(refusal(list(5)), null)
    assert.match(String(refusal(list(6))), /more than 5 entries/)
    assert.equal(refusal(object(5)), null)
    assert.match(String(refusal(object(6))), /more than 5 entries/)
    assert.equal(refusal('{"abcdef":1}'), null)
    assert.match(String(refusal('{"abcdefg":1}')), /more than 6 characters/)
    assert.match(String(refusal(`[${[list(5), list(5), list(5), list(5)].join(',')}]`)), /more than 20 values/)
  })

  test('lists beside each other are counted separately', () => {
    assert.equal(refusal(`[[1,1,1,1],[1,1,1,1],[1,1,1,1]]`), null)
  })

  test('brackets and commas inside strings count for nothing, whatever is escaped', () => {
    assert.equal(refusal(JSON.stringify('[[[[[[[[[[,,,,,,,,,,,,,,,,,,,,,,,,,,{{{{{{"::')), null)
    assert.equal(refusal(JSON.stringify({ a: '\\', b: '\\\\"[[[[[[', c: '",,,,,,,,"' })), null)
    assert.match(String(refusal(String.raw`["\\",1,1,1,1,1]`)), /more than 5 entries/)
  })

  test('a long value is no long field name', () => {
    assert.equal(refusal(`{"a":"${'x'.repeat(5000)}","b":1}`), null)
  })

  test('a text that is not JSON costs no more than one that is', () => {
    for (const text of [']]]]]]', '"never ends', '"\\', '{{{', ',,,', '']) assert.equal(refusal(text), null, text)
  })
})
