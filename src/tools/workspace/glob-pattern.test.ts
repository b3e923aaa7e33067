// Patterns for file names, as a table; and that none takes for ever.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { globPattern } from './glob-pattern.ts'

const table: [pattern: string, fits: string[], not: string[]][] = [
  ['*.ts', ['a.ts', '.ts'], ['a.tsx', 'src/a.ts', 'a.ts/b']],
  ['**/*.ts', ['a.ts', 'src/a.ts', 'src/x/y/a.ts'], ['a.js']],
  ['src/**', ['src/a', 'src/a/b'], ['srca', 'lib/src/a']],
  ['src/**/test/*.ts', ['src/test/a.ts', 'src/x/y/test/a.ts'], ['src/test/x/a.ts']],
  ['**', ['a', 'a/b/c'], []],
  ['a?c', ['abc', 'a.c'], ['ac', 'abbc', 'a/c']],
  ['[a-c]x', ['ax', 'cx'], ['dx', 'x']],
  ['[!a-c]x', ['dx'], ['ax']],
  ['[]x', ['[]x'], ['x']],
  ['{a,b}.{ts,js}', ['a.ts', 'b.js'], ['c.ts', 'a.md']],
  ['{src/{a,b},lib}/*.ts', ['src/a/x.ts', 'lib/x.ts'], ['src/x.ts']],
  ['./a//b', ['a/b'], ['a']],
  ['a*b*c', ['abc', 'axxbxxc', 'abcbc'], ['acb']],
  ['{a}', ['{a}'], ['a']],
  ['a.c', ['a.c'], ['abc']],
  ['(x|y)+', ['(x|y)+'], ['x']],
]

for (const [pattern, fits, not] of table) {
  test(`${pattern} fits ${fits.join(', ')}${not.length > 0 ? ` and not ${not.join(', ')}` : ''}`, () => {
    const { matches } = globPattern(pattern)
    for (const path of fits) assert.equal(matches(path), true, path)
    for (const path of not) assert.equal(matches(path), false, path)
  })
}

test('a pattern made to take for ever does not', () => {
  assert.equal(globPattern(`${'*a'.repeat(200)}b`).matches('a'.repeat(255)), false)
  assert.equal(globPattern(`${'**/a/'.repeat(100)}b`).matches('a/'.repeat(64) + 'a'), false)
})

test('a pattern with too many alternatives is refused', () => {
  assert.throws(() => globPattern('{a,b}'.repeat(20)), { code: 'file_refused' })
})
