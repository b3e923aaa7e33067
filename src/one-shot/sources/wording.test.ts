// Texts of records are shortened for sentences, never inside a character.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sayIn, shorten } from './wording.ts'

test('a text is one line of at most the given length, and is not cut inside a character', () => {
  assert.equal(shorten('  a\n b\t c ', 10), 'a b c')
  assert.equal(shorten('abcdef', 6), 'abcdef')
  assert.equal(shorten('abcdefg', 6), 'abcde…')
  assert.equal(shorten('abcd😀xyz', 6), 'abcd…')
  assert.equal(shorten('abc😀xyz', 6), 'abc😀…')
})

test('Chinese is spoken for zh and its variants, English for everything else', () => {
  const words = (language: string) => sayIn(language)('中文', 'English')

  assert.deepEqual(['zh', 'ZH-hans', 'en', 'zha', ''].map(words), ['中文', '中文', 'English', 'English', 'English'])
})
