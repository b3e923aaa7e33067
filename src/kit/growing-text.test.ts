import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import { grown } from './growing-text.ts'

const piece = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', 'token', '語', '\ud800', 'x'.repeat(500)))

test('a text grows by its pieces, whatever they are', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 200 }), (pieces) => {
      assert.equal(
        pieces.reduce((text, more) => grown(text, more), ''),
        pieces.join(''),
      )
    }),
  )
})

test('its pieces are joined from time to time, also by compiled code', () => {
  setFlagsFromString('--allow-natives-syntax')
  const isJoined = runInThisContext('(text) => %StringIsFlat(text)') as (text: string) => boolean
  // Compiled now, while the syntax is allowed.
  isJoined('')
  setFlagsFromString('--no-allow-natives-syntax')
  let joined = 0
  for (let round = 0; round < 200; round += 1) {
    let text = ''
    joined = 0
    for (let index = 0; index < 1000; index += 1) {
      text = grown(text, `token ${index} `)
      if (text.length > 100 && isJoined(text)) joined += 1
    }
    assert.ok(joined > 20, `${joined} times in round ${round}`)
  }
  // Each of them copies the whole text.
  assert.ok(joined < 100, `${joined} times`)
})
