// A file that fs_write reported as written survives a power cut: its content reaches the
// disk before its name does, and its name before the answer.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import fsPromises, { type FileHandle, open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openBench } from '../../../test/support/workspace.ts'

test('content is synced before the file gets its name, and the directory after it', async (t) => {
  const bench = openBench()
  t.after(() => bench.close())
  bench.write('notes.txt', 'old')
  const steps: string[] = []
  await watch(t, steps)

  const answer = await bench.use('fs_write', { path: 'notes.txt', content: 'new content' })

  assert.equal(answer.ok, true)
  assert.equal(bench.read('notes.txt'), 'new content')
  const { ino: file } = fs.statSync(join(bench.directory, 'notes.txt'))
  const { ino: directory } = fs.statSync(bench.directory)
  assert.deepEqual(steps, [`sync ${file} of 11 bytes`, `rename ${file}`, `sync ${directory}`])
})

test('a file that cannot be synced is not written, and the old one stays', async (t) => {
  const bench = openBench()
  t.after(() => bench.close())
  bench.write('notes.txt', 'old')
  const { prototype } = await fileHandle()
  t.mock.method(prototype, 'sync', async () => {
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })

  await assert.rejects(bench.use('fs_write', { path: 'notes.txt', content: 'new content' }), { code: 'tool_failed' })

  assert.equal(bench.read('notes.txt'), 'old')
  assert.deepEqual(fs.readdirSync(bench.directory), ['notes.txt'])
})

/** Notes every sync and every rename, by the inode of what is synced or renamed. */
async function watch(t: TestContext, steps: string[]): Promise<void> {
  const { prototype } = await fileHandle()
  const sync = prototype.sync
  t.mock.method(prototype, 'sync', async function (this: FileHandle) {
    await sync.call(this)
    const stats = await this.stat()
    steps.push(`sync ${stats.ino}${stats.isFile() ? ` of ${stats.size} bytes` : ''}`)
  })
  const { rename } = fsPromises
  t.mock.method(fsPromises, 'rename', async (from: string, to: string) => {
    steps.push(`rename ${fs.statSync(from).ino}`)
    await rename(from, to)
  })
  syncBuiltinESMExports()
  t.after(() => {
    fsPromises.rename = rename
    syncBuiltinESMExports()
  })
}

async function fileHandle(): Promise<{ prototype: FileHandle }> {
  const handle = await open(import.meta.filename)
  await handle.close()
  return handle.constructor
}
