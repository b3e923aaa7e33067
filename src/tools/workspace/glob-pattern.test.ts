// Patterns for file names, as a table, and patterns that are made to take for ever.

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

test('matching takes at most so many steps as the pattern has signs, times the characters of the name', () => {
  const name = 'a'.repeat(255)
  const hostile: [pattern: string, path: string][] = [
    [`${'*a'.repeat(200)}b`, name],
    [`${'*a'.repeat(450)}b`, name],
    [`${'**/a/'.repeat(100)}b`, 'a/'.repeat(64) + 'a'],
    ['*['.repeat(450), name],
    [`${'*[!b]'.repeat(180)}[c]`, name],
    [`*[${'b-c'.repeat(300)}]`, name],
    [`${'**/'.repeat(300)}*${'['.repeat(50)}`, `${'a'.repeat(60)}/`.repeat(60)],
  ]
  for (const [pattern, path] of hostile) {
    const glob = globPattern(pattern)

    assert.equal(glob.matches(path), false, pattern)
    assert.ok(glob.steps <= 2 * pattern.length * path.length, `${glob.steps} steps for ${pattern.slice(0, 40)}`)
  }
})

test('a bracket that is never closed is itself, also before one that is', () => {
  assert.equal(globPattern('[').matches('['), true)
  assert.equal(globPattern('a]b[').matches('a]b['), true)
  assert.equal(globPattern('[a][').matches('a['), true)
})

test('a pattern with too many alternatives is refused', () => {
  assert.throws(() => globPattern('{a,b}'.repeat(20)), { code: 'file_refused' })
})

test('alternatives that are long when written out are refused', () => {
  assert.throws(() => globPattern(`{a,b}{a,b}{a,b}{a,b}${'x'.repeat(900)}`), { code: 'file_refused' })
})
