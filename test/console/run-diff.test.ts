// The difference of two texts and of two runs, as the arena shows it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Block } from '../../client/src/index.ts'
import fc from 'fast-check'
import { runDiff } from '../../console/src/pages/arena/run-diff.ts'
import { diffTexts, similarity } from '../../console/src/ui/text-diff.ts'

const side = (left: string, right: string, name: 'left' | 'right') =>
  diffTexts(left, right)
    .filter(({ kind }) => kind === 'same' || kind === name)
    .map(({ text }) => text)
    .join('')

describe('the difference of two texts', () => {
  test('has all of both texts, in order, whatever they are', () => {
    const text = fc
      .array(fc.constantFrom('a', 'bc', ' ', '\n', '好', '.'), { maxLength: 30 })
      .map((all) => all.join(''))
    fc.assert(
      fc.property(text, text, (left, right) => {
        assert.equal(side(left, right, 'left'), left)
        assert.equal(side(left, right, 'right'), right)
      }),
    )
  })

  test('names the words that changed, and characters of scripts without spaces', () => {
    assert.deepEqual(diffTexts('the quick brown fox', 'the slow brown fox jumps'), [
      { kind: 'same', text: 'the ' },
      { kind: 'left', text: 'quick' },
      { kind: 'right', text: 'slow' },
      { kind: 'same', text: ' brown fox' },
      { kind: 'right', text: ' jumps' },
    ])
    assert.deepEqual(
      diffTexts('今天天气很好', '今天天气不好').map(({ text }) => text),
      ['今天天气', '很', '不', '好'],
    )
  })

  test('gives up on texts that have nothing in common, instead of taking for ever', () => {
    const words = (name: string) => Array.from({ length: 50_000 }, (_, index) => `${name}${index}`).join(' ')
    const parts = diffTexts(words('a'), words('b'))
    assert.deepEqual(
      parts.map(({ kind }) => kind),
      ['left', 'right'],
    )
    assert.equal(similarity(parts), 0)
    assert.equal(similarity(diffTexts('', '')), 1)
  })
})

describe('the difference of two runs', () => {
  const text = (id: string, content: string): Block => {
    return { type: 'text', id, role: 'assistant', text: content, state: 'done', sources: [] }
  }
  const tool = (id: string, name: string, input: Record<string, string>): Block => {
    return { type: 'tool', id, name, status: 'succeeded', input, output: { ok: true } }
  }

  test('matches calls of the same tool, those with the same input first, and keeps the order', () => {
    const { rows, tools } = runDiff(
      [tool('1', 'search', { q: 'a', in: 'x' }), tool('2', 'search', { q: 'b' }), text('3', 'Found it.')],
      [tool('4', 'search', { q: 'b' }), tool('5', 'time', {}), text('6', 'Found them.')],
    )
    assert.deepEqual(
      rows.map(({ kind, left, right, isSame }) => [
        kind,
        typeof left === 'string' ? left : left?.id,
        typeof right === 'string' ? right : right?.id,
        isSame,
      ]),
      [
        ['tool', '1', undefined, false],
        ['tool', '2', '4', true],
        ['tool', undefined, '5', false],
        ['text', 'Found it.', 'Found them.', false],
      ],
    )
    assert.deepEqual(tools, { matched: 1, sameInput: 1, onlyLeft: 1, onlyRight: 1 })
  })

  test('sees no difference in the order of keys, and none in equal runs', () => {
    const [a, b] = [tool('1', 'x', { p: '1', q: '2' }), tool('2', 'x', { q: '2', p: '1' })]
    const diff = runDiff([a, text('t', 'Same.')], [b, text('u', 'Same.')])
    assert.ok(diff.rows.every(({ isSame }) => isSame))
    assert.equal(diff.similarity, 1)
  })

  test('of very long runs is cut, and says so', () => {
    const long = Array.from({ length: 400 }, (_, index) => text(String(index), `Line ${index}`))
    const diff = runDiff(long, long)
    assert.deepEqual([diff.rows.length, diff.isCut], [300, true])
  })
})
