// Ways out of a working directory, tried with every file tool. After each, the secret files
// outside are unchanged, and no answer contains any of their text.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { type Bench, openBench } from '../../../test/support/workspace.ts'

let bench: Bench
before(() => {
  bench = openBench()
  const { folder, directory } = bench
  bench.write('real.txt', 'inside\n')
  mkdirSync(join(directory, 'sub'))
  symlinkSync(join(folder, 'secret.txt'), join(directory, 'link.txt'))
  symlinkSync('../../secret.txt', join(directory, 'relative-link.txt'))
  symlinkSync(folder, join(directory, 'link-dir'))
  symlinkSync('../theirs', join(directory, 'neighbour'))
  symlinkSync('link-dir', join(directory, 'link-to-link'))
  symlinkSync('real.txt', join(directory, 'link-inside.txt'))
  symlinkSync('link-loop', join(directory, 'link-loop'))
  symlinkSync('/proc/self/root', join(directory, 'magic'))
  linkSync(join(folder, 'secret.txt'), join(directory, 'hard.txt'))
  execFileSync('mkfifo', [join(directory, 'pipe')])
})
after(() => bench.close())

/** What lies outside, by name and content. */
function outsideNow(): string {
  const { folder } = bench
  const theirs = join(folder, 'workspace', 'theirs')
  return JSON.stringify([
    readdirSync(folder),
    readdirSync(join(folder, 'workspace')),
    readdirSync(theirs),
    readFileSync(join(folder, 'secret.txt'), 'utf8'),
    readFileSync(join(theirs, 'secret.txt'), 'utf8'),
    statSync(join(folder, 'secret.txt')).mtimeMs,
    statSync(join(theirs, 'secret.txt')).mtimeMs,
  ])
}

const paths: [title: string, path: (folder: string) => string][] = [
  ['dot-dot', () => '../../secret.txt'],
  ['dot-dot into a neighbour', () => '../theirs/secret.txt'],
  ['dot-dot after a directory', () => 'sub/../../theirs/secret.txt'],
  ['dot-dot after a directory that is not there', () => 'nowhere/../../theirs/secret.txt'],
  ['many dot-dots', () => `${'../'.repeat(40)}etc/passwd`],
  ['an absolute path', (folder) => join(folder, 'secret.txt')],
  ['an absolute path that begins like ours', (folder) => join(folder, 'workspace', 'mine-not', 'x.txt')],
  ['an absolute path with dot-dot', (folder) => `${folder}/workspace/mine/../theirs/secret.txt`],
  ['a system file', () => '/etc/passwd'],
  ['the root through two slashes', () => '//etc/passwd'],
  ['a link to a file outside', () => 'link.txt'],
  ['a relative link to a file outside', () => 'relative-link.txt'],
  ['a file through a link to a directory', () => 'link-dir/secret.txt'],
  ['a neighbour through a link', () => 'neighbour/secret.txt'],
  ['a link to a link', () => 'link-to-link/secret.txt'],
  ['a link to itself', () => 'link-loop'],
  ['a link through /proc', () => 'magic/etc/passwd'],
  ['our own descriptors', () => '/proc/self/fd/0'],
  ['our own environment', () => '/proc/self/environ'],
  ['a link inside, which is not followed either', () => 'link-inside.txt'],
  ['a hard link', () => 'hard.txt'],
  ['a device', () => '/dev/zero'],
  ['a pipe', () => 'pipe'],
  ['a directory', () => 'sub'],
  ['the directory itself', () => '.'],
  ['a very long name', () => 'x'.repeat(300)],
  ['a very long path', () => 'x/'.repeat(4000)],
  ['a very deep path', () => `${'x/'.repeat(100)}y`],
  ['NUL at the end', () => 'real.txt\0'],
  ['NUL before an ending', () => '../../secret.txt\0.txt'],
]

describe('no path leads out', () => {
  for (const [title, path] of paths) {
    test(title, async () => {
      const named = path(bench.folder)
      const before = outsideNow()
      const answers = [
        await bench.use('fs_read', { path: named }),
        await bench.use('fs_write', { path: named, content: 'overwritten' }),
        await bench.use('fs_edit', { path: named, old_string: 'secret', new_string: 'public' }),
        await bench.use('fs_multi_edit', { edits: [{ path: named, find: 'secret', replace: 'public' }] }),
      ]
      for (const answer of answers) {
        assert.equal(answer.ok, false, JSON.stringify(answer))
        assert.equal(answer.modified, false)
        assert.deepEqual(answer.paths, [])
      }
      for (const search of [
        await bench.use('fs_grep', { pattern: 'secret', path: named }),
        await bench.use('fs_glob', { pattern: '**', cwd: named }),
      ]) {
        assert.ok(!JSON.stringify(search).includes('nobody may read'), JSON.stringify(search))
        assert.ok(!search.ok || !JSON.stringify(search).includes('theirs'), JSON.stringify(search))
      }
      assert.ok(!JSON.stringify(answers).includes('nobody may read'))
      assert.equal(outsideNow(), before)
    })
  }
})

for (const named of [
  '%2e%2e/%2e%2e/secret.txt',
  '..%2f..%2fsecret.txt',
  '..\\..\\secret.txt',
  '．．/secret.txt',
  '~/secret.txt',
  'link-dir/../up.txt',
]) {
  test(`what only looks like a way up stays inside: ${named}`, async () => {
    const before = outsideNow()
    assert.equal((await bench.use('fs_read', { path: named })).ok, false)
    const written = await bench.use('fs_write', { path: named, content: 'inside' })
    assert.equal(written.ok, true)
    assert.equal(bench.read(named.replace('link-dir/../', '')), 'inside')
    assert.equal(outsideNow(), before)
  })
}

test('searching a whole directory goes through no link', async () => {
  const found = await bench.use('fs_grep', { pattern: 'secret' })
  assert.deepEqual(found.output.matches, [])
  const names = await bench.use('fs_glob', { pattern: '**/*.txt', dot: true })
  assert.ok(names.output.matches.includes('real.txt'))
  for (const name of names.output.matches) assert.doesNotMatch(name, /link|neighbour|magic/)
})

test('a working directory outside the workspace, or behind a link, cannot be opened', async () => {
  const { folder, folders } = bench
  symlinkSync('theirs', join(folder, 'workspace', 'linked'))
  for (const asked of [
    '..',
    '../..',
    folder,
    '/',
    '/etc',
    'a/../../b',
    join(folder, 'workspace-not'),
    'linked',
    'linked/deeper',
    'x\0y',
    'y'.repeat(300),
  ]) {
    await assert.rejects(folders.open(asked), { code: 'workspace_outside' }, asked)
  }
  await assert.rejects(
    folders.of({ workspace: { dir: '../..' } }).then((one) => one.readFile(one.locate('secret.txt'))),
  )
  assert.equal(await folders.open(join(folder, 'workspace', 'new', 'one')), 'new/one')
  assert.equal(await folders.open('./new/./two/'), 'new/two')
  assert.equal(await folders.open('.'), '.')
  rmSync(join(folder, 'workspace', 'linked'))
})

describe('a name that is swapped for a link while it is used', () => {
  const rounds = 400
  // Another thread swaps without pause; the tools must meet every moment of it.
  const swapper = `
    const { parentPort, workerData: { real, link, name } } = require('node:worker_threads')
    const fs = require('node:fs')
    let on = true
    parentPort.on('message', () => { on = false })
    function round() {
      for (let i = 0; i < 200; i += 1) {
        try { fs.renameSync(name, real) } catch {}
        try { fs.renameSync(link, name) } catch {}
        try { fs.renameSync(name, link) } catch {}
        try { fs.renameSync(real, name) } catch {}
      }
      if (on) setImmediate(round)
      else parentPort.close()
    }
    round()`

  async function whileSwapped(work: () => Promise<void>, real: string, link: string, name: string): Promise<void> {
    const thread = new Worker(swapper, { eval: true, workerData: { real, link, name } })
    try {
      await work()
    } finally {
      thread.postMessage('stop')
      await new Promise((resolve) => thread.once('exit', resolve))
    }
  }

  test('a directory: nothing is read, written or made behind the link', async () => {
    const { directory, folder } = bench
    const [real, link, name] = ['swap-real', 'swap-link', 'swap'].map((one) => join(directory, one)) as [
      string,
      string,
      string,
    ]
    mkdirSync(name)
    writeFileSync(join(name, 'secret.txt'), 'harmless')
    symlinkSync(join(folder, 'workspace', 'theirs'), link)
    const before = outsideNow()
    const seen = { read: 0, written: 0, refused: 0 }

    await whileSwapped(
      async () => {
        for (let i = 0; i < rounds; i += 1) {
          const answer = await bench.use('fs_read', { path: 'swap/secret.txt' })
          assert.ok(!JSON.stringify(answer).includes('nobody may read'))
          if (answer.ok) seen.read += 1
          else seen.refused += 1
          const written = await bench.use(
            'fs_write',
            { path: 'swap/new.txt', content: `${i}` },
            { conversationId: `swap-${i}` },
          )
          if (written.ok) seen.written += 1
          else seen.refused += 1
          if (i % 100 === 0) await bench.use('fs_write', { path: `swap/made-${i}/new.txt`, content: 'x' })
          if (i % 100 === 0)
            assert.ok(!JSON.stringify(await bench.use('fs_grep', { pattern: 'may read' })).includes('secret that'))
        }
      },
      real,
      link,
      name,
    )

    assert.equal(outsideNow(), before)
    // Both sides of the race were really met.
    assert.ok(seen.read > 0 && seen.written > 0 && seen.refused > 0, JSON.stringify(seen))
  })

  test('a file: the link is never read through and its target never written', async () => {
    const { directory, folder } = bench
    const [real, link, name] = ['file-real', 'file-link', 'file.txt'].map((one) => join(directory, one)) as [
      string,
      string,
      string,
    ]
    writeFileSync(name, 'harmless')
    symlinkSync(join(folder, 'secret.txt'), link)
    const before = outsideNow()
    let refusals = 0
    await whileSwapped(
      async () => {
        for (let i = 0; i < rounds; i += 1) {
          const answer = await bench.use('fs_read', { path: 'file.txt' })
          assert.ok(!JSON.stringify(answer).includes('nobody may read'))
          if (!answer.ok) refusals += 1
          await bench.use('fs_edit', { path: 'file.txt', old_string: 'secret', new_string: 'public' })
        }
      },
      real,
      link,
      name,
    )
    assert.equal(outsideNow(), before)
    assert.ok(refusals > 0)
  })
})

test('a directory that is moved out while it is open is written no more', async () => {
  const { directory, folder, folders } = bench
  mkdirSync(join(directory, 'moving'))
  const workspace = await folders.of({ workspace: { dir: 'mine' } })
  // The move comes after the names were opened and before the file gets its name.
  const inner = workspace as unknown as { checkStillInside(...args: unknown[]): Promise<void> }
  const check = inner.checkStillInside.bind(workspace)
  inner.checkStillInside = async (...args) => {
    renameSync(join(directory, 'moving'), join(folder, 'moved'))
    await check(...args)
  }
  await assert.rejects(workspace.writeFile(workspace.locate('moving/x.txt'), Buffer.from('x'), 'k'), {
    code: 'workspace_outside',
  })
  assert.deepEqual(readdirSync(join(folder, 'moved')), [])
  rmSync(join(folder, 'moved'), { recursive: true })
})
