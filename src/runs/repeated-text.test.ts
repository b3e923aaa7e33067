// Text that was shown before a crash, combined with every kind of answer when the model is asked again.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RepeatedTextFilter } from './repeated-text.ts'

/** What a reader has under the old and the new message in the end, and what was emitted piece by piece. */
function tell(shown: string, pieces: string[]): { kept: string; fresh: string; diverged: boolean } {
  const filter = new RepeatedTextFilter(shown)
  let kept = shown
  let fresh = ''
  let diverged = false
  for (const piece of [...pieces, null]) {
    const next = piece === null ? filter.end() : filter.feed(piece)
    if (next.diverged) {
      assert.equal(diverged, false, 'it diverges at most once')
      diverged = true
    }
    if (diverged) fresh += next.fresh
    else kept += next.fresh
  }
  return { kept, fresh, diverged }
}

/** Few letters, so that answers often begin alike. */
const words = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '🙂'), maxLength: 12 })
const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', '🙂'), maxLength: 4 }), { maxLength: 8 })

describe('a text that is asked for again after a crash', () => {
  it('ends as the whole answer: under the old message where it was repeated, under a new one where it was not', () => {
    fc.assert(
      fc.property(words, pieces, (shown, answer) => {
        const whole = answer.join('')

        const result = tell(shown, answer)

        assert.equal(result.diverged, !whole.startsWith(shown))
        assert.equal(result.diverged ? result.fresh : result.kept, whole)
        if (result.diverged)
          assert.equal(result.kept, shown, 'shown text is never un-shown, and never grows a wrong end')
      }),
      { numRuns: 2000 },
    )
  })

  it('shows nothing again of what the model repeats word for word', () => {
    fc.assert(
      fc.property(words, words, fc.integer({ min: 1, max: 5 }), (shown, rest, size) => {
        const whole = shown + rest
        const cut = whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []

        assert.deepEqual(tell(shown, cut), { kept: whole, fresh: '', diverged: false })
      }),
    )
  })

  it('is decided as soon as it can be, and not held back until the end', () => {
    const filter = new RepeatedTextFilter('Roses are ')

    assert.deepEqual(filter.feed('Roses '), { diverged: false, fresh: '' })
    assert.deepEqual(filter.feed('are red'), { diverged: false, fresh: 'red' })
    assert.deepEqual(filter.feed(', I say'), { diverged: false, fresh: ', I say' })
    assert.deepEqual(new RepeatedTextFilter('Roses are ').feed('Violets'), { diverged: true, fresh: 'Violets' })
  })

  it('of which nothing was shown passes straight through', () => {
    fc.assert(
      fc.property(pieces, (answer) =>
        assert.deepEqual(tell('', answer), { kept: answer.join(''), fresh: '', diverged: false }),
      ),
    )
  })
})
