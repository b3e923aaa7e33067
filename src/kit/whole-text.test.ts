// However a text is cut into pieces, what comes out is valid piece by piece, and together the same text.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WholeText } from './whole-text.ts'

function pass(pieces: readonly string[]): string[] {
  const whole = new WholeText()
  return [...pieces.map((piece) => whole.feed(piece)), whole.end()]
}

test('a character whose halves come in two pieces stays whole', () => {
  assert.deepEqual(pass(['a \ud83d', '\ude00 b']), ['a ', '😀 b', ''])
  assert.deepEqual(pass(['\ud83d', '', '\ude00']), ['', '', '😀', ''])
})

test('a half whose other half never comes is replaced', () => {
  assert.deepEqual(pass(['a\ud83d', 'b', '\ude00c']), ['a', '\ufffdb', '\ufffdc', ''])
  assert.deepEqual(pass(['a\ud83d\ud83d']), ['a\ufffd', '\ufffd'])
})

test('any text that is cut anywhere comes out as it was', () => {
  const units = fc.string({ unit: fc.constantFrom('a', 'é', '漢', '😀', '🌍') })
  fc.assert(
    fc.property(units, fc.array(fc.nat(20)), (text, lengths) => {
      const pieces: string[] = []
      let at = 0
      for (const length of [...lengths, text.length]) {
        pieces.push(text.slice(at, at + length))
        at += length
      }
      const out = pass(pieces)
      assert.equal(out.join(''), text)
      assert.ok(out.every((piece) => piece.isWellFormed()))
    }),
  )
})
