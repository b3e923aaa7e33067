import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { beginningOf, cutText } from './cut-text.ts'

test('the pieces of a text are the text, none too long, none torn inside a character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 2, max: 9 }), (text, charsMax) => {
      const pieces = cutText(text, charsMax)
      assert.equal(beginningOf(text, charsMax), pieces[0] ?? '')

      assert.equal(pieces.join(''), text)
      for (const piece of pieces) {
        assert.ok(piece.length > 0 && piece.length <= charsMax)
        assert.ok(piece.isWellFormed() || !text.isWellFormed())
      }
    }),
  )
})
