import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { filesOfFolder, isReadable } from './skill-files.ts'

const mebibyte = 1024 * 1024

async function listed(files: Record<string, string | number>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-skill-'))
  try {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), typeof content === 'string' ? content : Buffer.alloc(content))
    }
    return (await filesOfFolder(folder)).map(({ path }) => path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('files are listed in the order of their paths, with what their content is', async () => {
  assert.deepEqual(await listed({ 'b/c.md': 'x', 'a.md': 'y', 'b/a.md': 'z' }), ['a.md', 'b/a.md', 'b/c.md'])
})

test('a folder is read to a bounded depth, number and size of files', async () => {
  const at = (depth: number) => `${'d/'.repeat(depth - 1)}f`
  assert.deepEqual(await listed({ [at(8)]: 'x', [at(9)]: 'x' }), [at(8)])
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${String(index).padStart(3, '0')}`, '']))
  const found = await listed(many)
  assert.deepEqual([found.length, found.at(-1)], [500, 'f499'])
  assert.deepEqual(await listed({ most: mebibyte, more: mebibyte + 1 }), ['most'])
})

test('a file of a package is for the model unless it is too large, has too long a path, or is the server’s own', () => {
  const own = new Set(['SKILL.md'])
  assert.equal(isReadable('a', mebibyte, own), true)
  assert.equal(isReadable('a', mebibyte + 1, own), false)
  assert.equal(isReadable('x'.repeat(300), 1, own), true)
  assert.equal(isReadable('x'.repeat(301), 1, own), false)
  assert.equal(isReadable('SKILL.md', 1, own), false)
})
