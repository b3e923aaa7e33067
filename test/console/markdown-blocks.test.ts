// Markdown that grows: reading only the last block again gives the same as reading everything.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { marked } from 'marked'
import { extendMarkdown, noMarkdown } from '../../console/src/ui/markdown-blocks.ts'

const pieces = [
  'Some words',
  '\n',
  '\n\n',
  '# Title',
  '- item',
  '  - inner',
  '1. first',
  '```',
  '```js\n',
  '| a | b |',
  '|---|---|',
  '| 1 | 2 |',
  '> quote',
  '---',
  '===',
  '    code',
  '**bold',
  '**',
  '<div>',
  '</div>',
  '[link](https://a.example)',
  ' ',
  '\t',
  '~~~',
  '* * *',
  '![',
  '\\',
]

test('text in any pieces gives the blocks of the whole text', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 30 }), (parts) => {
      let grown = noMarkdown
      for (const part of parts) grown = extendMarkdown(grown, grown.text + part)
      const whole = parts.join('')
      const expected = marked.lexer(whole, { gfm: true }).filter(({ type }) => type !== 'space')
      const shown = grown.blocks.filter(({ token }) => token.type !== 'space')
      assert.deepEqual(
        shown.map(({ token }) => [token.type, 'text' in token ? token.text : '']),
        expected.map((token) => [token.type, 'text' in token ? token.text : '']),
      )
    }),
    { numRuns: 400 },
  )
})

test('text that shrinks and grows again, as in a replay, gives the blocks of what is left', () => {
  const step = fc.tuple(fc.constantFrom(...pieces), fc.integer({ min: 0, max: 12 }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let shown = noMarkdown
      for (const [part, removed] of steps) {
        shown = extendMarkdown(shown, shown.text + part)
        shown = extendMarkdown(shown, shown.text.slice(0, shown.text.length - removed))
        const expected = extendMarkdown(noMarkdown, shown.text)
        assert.deepEqual(
          shown.blocks.map(({ start, raw }) => [start, raw]),
          expected.blocks.map(({ start, raw }) => [start, raw]),
        )
      }
    }),
    { numRuns: 400 },
  )
  const long = extendMarkdown(noMarkdown, 'One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive.\n\nSix.')
  const shorter = extendMarkdown(long, long.text.slice(0, -2))
  assert.equal(shorter.blocks[0], long.blocks[0], 'blocks at the beginning are not read again')
})

test('blocks before the last stay the same objects, so that they are not drawn again', () => {
  const first = extendMarkdown(noMarkdown, 'One.\n\nTwo.\n\nThree.\n\nFo')
  const second = extendMarkdown(first, `${first.text}ur.`)
  assert.equal(second.blocks.length, 4)
  assert.equal(second.blocks[0], first.blocks[0])
  assert.equal(second.blocks[1], first.blocks[1])
  assert.notEqual(second.blocks[3], first.blocks[3])
  assert.equal(extendMarkdown(second, second.text), second)
})

test('a text that does not continue the one before is read from the start', () => {
  const first = extendMarkdown(noMarkdown, '# One')
  assert.deepEqual(
    extendMarkdown(first, 'Other').blocks.map(({ token }) => token.type),
    ['paragraph'],
  )
})
