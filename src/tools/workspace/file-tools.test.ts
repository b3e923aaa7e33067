// What each file tool promises, in a real directory.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { JsonValue } from '../../journal/event.ts'
import { type Bench, openBench } from '../../../test/support/workspace.ts'
import { toolContext } from '../../../test/support/tool-context.ts'

type Found = { path: string; column: number }

let bench: Bench
beforeEach(() => {
  bench = openBench()
})
afterEach(() => bench.close())

describe('fs_read', () => {
  test('gives the text of a file, and says that nothing was changed', async () => {
    bench.write('a.txt', 'one\ntwo\nthree\n')
    const answer = await bench.use('fs_read', { path: './a.txt' })
    assert.deepEqual(answer, {
      ok: true,
      output: { path: 'a.txt', offset: 1, limit: 2000, truncated: false, totalLines: 3, content: 'one\ntwo\nthree\n' },
      summary: 'Read 3 lines of a.txt.',
      modified: false,
      paths: [],
    })
  })

  test('gives the lines that were asked for, counted from 1', async () => {
    bench.write('a.txt', 'one\r\ntwo\r\nthree')
    const { output } = await bench.use('fs_read', { path: 'a.txt', offset: 2, limit: 1 })
    assert.equal(output.content, 'two\r\n')
    assert.equal(output.truncated, true)
    assert.equal(output.totalLines, 3)
    assert.equal((await bench.use('fs_read', { path: 'a.txt', offset: 9 })).output.content, '')
  })

  test('takes an absolute path inside, and names it so', async () => {
    bench.write('a.txt', 'x')
    const path = join(bench.directory, 'a.txt')
    assert.equal((await bench.use('fs_read', { path })).output.path, path)
  })

  test('says no to what is missing, not text, or too large', async () => {
    writeFileSync(join(bench.directory, 'image.png'), Buffer.from([0x89, 0x50, 0, 1]))
    writeFileSync(join(bench.directory, 'latin1.txt'), Buffer.from([0x66, 0xfc, 0x72]))
    writeFileSync(join(bench.directory, 'large.txt'), Buffer.alloc(10 * 1024 * 1024 + 1, 'x'))
    for (const [path, reason] of [
      ['missing.txt', /There is no file/],
      ['image.png', /not a text file/],
      ['latin1.txt', /not a text file/],
      ['large.txt', /larger than 10 MiB/],
      ['image.png/x', /a file, not a directory/],
    ] as const) {
      const answer = await bench.use('fs_read', { path })
      assert.equal(answer.ok, false)
      assert.match(answer.output.error, reason)
    }
  })
})

describe('fs_write', () => {
  test('makes a file with its directories, and says which one it was', async () => {
    const answer = await bench.use('fs_write', { path: 'deep/er/a.txt', content: 'héllo\n' })
    assert.equal(bench.read('deep/er/a.txt'), 'héllo\n')
    assert.deepEqual(answer, {
      ok: true,
      output: { ok: true, path: 'deep/er/a.txt', bytes: 7, lines: 1 },
      summary: 'Wrote 7 bytes to deep/er/a.txt.',
      modified: true,
      paths: ['deep/er/a.txt'],
    })
  })

  test('replaces a file at once, keeps its mode, and leaves nothing beside it', async () => {
    bench.write('run.sh', 'old')
    chmodSync(join(bench.directory, 'run.sh'), 0o755)
    const inode = statSync(join(bench.directory, 'run.sh')).ino
    await bench.use('fs_write', { path: 'run.sh', content: 'new' })
    const stats = statSync(join(bench.directory, 'run.sh'))
    assert.equal(stats.mode & 0o777, 0o755)
    assert.notEqual(stats.ino, inode, 'a new file took the name')
    assert.deepEqual(readdirSync(bench.directory), ['run.sh'])
  })

  test('is refused if the file was changed since it was read', async () => {
    bench.write('a.txt', 'mine')
    await bench.use('fs_read', { path: 'a.txt' })
    bench.write('a.txt', 'theirs')
    const answer = await bench.use('fs_write', { path: 'a.txt', content: 'new' })
    assert.equal(answer.ok, false)
    assert.equal(answer.modified, false)
    assert.match(answer.summary, /has changed since it was read/)
    assert.equal(bench.read('a.txt'), 'theirs')

    await bench.use('fs_read', { path: 'a.txt' })
    assert.equal((await bench.use('fs_write', { path: 'a.txt', content: 'new' })).ok, true)
    assert.equal((await bench.use('fs_write', { path: 'a.txt', content: 'newer' })).ok, true, 'own writes are known')
  })

  test('only the session that read it is held to what it read', async () => {
    bench.write('a.txt', 'mine')
    await bench.use('fs_read', { path: 'a.txt' })
    bench.write('a.txt', 'theirs')
    const answer = await bench.use('fs_write', { path: 'a.txt', content: 'new' }, { conversationId: 'another' })
    assert.equal(answer.ok, true)
  })
})

describe('fs_edit', () => {
  test('replaces the one place that is meant, literally', async () => {
    bench.write('a.ts', 'const a = 1\nconst b = 2\n')
    const answer = await bench.use('fs_edit', { path: 'a.ts', old_string: 'b = 2', new_string: 'b = "$&"' })
    assert.equal(bench.read('a.ts'), 'const a = 1\nconst b = "$&"\n')
    assert.deepEqual(answer.output, { ok: true, path: 'a.ts', replacements: 1, lines: 2 })
    assert.equal(answer.modified, true)
    assert.deepEqual(answer.paths, ['a.ts'])
  })

  test('says no where it is not found or not clear, and changes nothing', async () => {
    bench.write('a.ts', 'x x')
    const unclear = await bench.use('fs_edit', { path: 'a.ts', old_string: 'x', new_string: 'y' })
    assert.match(unclear.output.error, /2 times/)
    const missing = await bench.use('fs_edit', { path: 'a.ts', old_string: 'z', new_string: 'y' })
    assert.match(missing.output.error, /not found/)
    assert.equal((await bench.use('fs_edit', { path: 'b.ts', old_string: 'z', new_string: 'y' })).ok, false)
    assert.equal(bench.has('b.ts'), false)
    assert.equal(bench.read('a.ts'), 'x x')
    const all = await bench.use('fs_edit', { path: 'a.ts', old_string: 'x', new_string: 'y', replace_all: true })
    assert.equal(all.output.replacements, 2)
    assert.equal(bench.read('a.ts'), 'y y')
  })

  test('that would make a file too large is refused before it does', async () => {
    bench.write('a.ts', 'x'.repeat(200_000))
    const input = { path: 'a.ts', old_string: 'x', new_string: 'y'.repeat(200_000), replace_all: true }
    assert.match((await bench.use('fs_edit', input)).output.error, /larger than 10 MiB/)
  })

  test('an edit that changes nothing is not called a change', async () => {
    bench.write('a.ts', 'x')
    const answer = await bench.use('fs_edit', { path: 'a.ts', old_string: 'x', new_string: 'x' })
    assert.equal(answer.ok, true)
    assert.equal(answer.modified, false)
    assert.deepEqual(answer.paths, [])
  })

  test('is refused if the file was changed since it was read', async () => {
    bench.write('a.ts', 'one two')
    await bench.use('fs_read', { path: 'a.ts' })
    bench.write('a.ts', 'one two three')
    const answer = await bench.use('fs_edit', { path: 'a.ts', old_string: 'one', new_string: 'ONE' })
    assert.match(answer.output.error, /has changed/)
    assert.equal(bench.read('a.ts'), 'one two three')
  })

  test('edits of one step at the same time lose nothing', async () => {
    bench.write('a.ts', Array.from({ length: 20 }, (_, i) => `<${i}>`).join(' '))
    await bench.use('fs_read', { path: 'a.ts' })
    const edits = Array.from({ length: 20 }, (_, i) =>
      bench.use('fs_edit', { path: 'a.ts', old_string: `<${i}>`, new_string: `(${i})` }),
    )
    for (const answer of await Promise.all(edits)) assert.equal(answer.ok, true)
    assert.doesNotMatch(bench.read('a.ts'), /</)
  })
})

describe('fs_multi_edit', () => {
  test('edits several files; a file whose edits do not fit stays whole', async () => {
    bench.write('a.ts', 'a1 a2')
    bench.write('b.ts', 'b1 b2')
    const answer = await bench.use('fs_multi_edit', {
      edits: [
        { path: 'a.ts', find: 'a1', replace: 'A1' },
        { path: './a.ts', find: 'a2', replace: 'A2' },
        { path: 'b.ts', find: 'b1', replace: 'B1' },
        { path: 'b.ts', find: 'nowhere', replace: '' },
        { path: '../x', find: 'x', replace: '' },
      ],
    })
    assert.equal(bench.read('a.ts'), 'A1 A2')
    assert.equal(bench.read('b.ts'), 'b1 b2')
    assert.equal(answer.ok, false)
    assert.equal(answer.modified, true)
    assert.deepEqual(answer.paths, ['a.ts'])
    assert.deepEqual(
      answer.output.results.map(({ status }: { status: string }) => status),
      ['ok', 'ok', 'skipped', 'error', 'error'],
    )
    assert.match(answer.summary, /^1 file updated, 2 edits made, 3 failed/)
  })

  test('all that fit is a success', async () => {
    bench.write('a.ts', 'a a')
    const edits = [{ path: 'a.ts', find: 'a', replace: 'b', replace_all: true }]
    const answer = await bench.use('fs_multi_edit', { edits })
    assert.deepEqual(answer.output, { ok: true, results: [{ path: 'a.ts', replacements: 2, status: 'ok' }] })
  })
})

describe('a call that is made again after a crash', () => {
  const cases: [name: string, input: JsonValue, result: string][] = [
    ['fs_write', { path: 'a.txt', content: 'new' }, 'new'],
    ['fs_edit', { path: 'a.txt', old_string: 'old', new_string: 'new' }, 'new'],
    [
      'fs_multi_edit',
      {
        edits: [
          { path: 'a.txt', find: 'o', replace: 'n' },
          { path: 'a.txt', find: 'ld', replace: 'ew' },
        ],
      },
      'new',
    ],
  ]

  for (const [name, input, result] of cases) {
    test(`${name} that had happened says so again and changes nothing`, async () => {
      bench.write('a.txt', 'old')
      const first = await bench.use(name, input, { idempotencyKey: 'k' })
      const inode = statSync(join(bench.directory, 'a.txt')).ino
      const again = await bench.use(name, input, { idempotencyKey: 'k' })
      assert.deepEqual(again, first)
      assert.equal(statSync(join(bench.directory, 'a.txt')).ino, inode)
      assert.equal(bench.read('a.txt'), result)
    })

    test(`${name} that was announced and did not happen is done now`, async () => {
      bench.write('a.txt', 'old')
      // The crash: the announcement is stored, the file is not written.
      const crash = new Error('crash')
      const folders = bench.folders as { of: typeof bench.folders.of }
      const real = folders.of
      folders.of = async (context) => Object.assign(await real(context), { writeFile: () => Promise.reject(crash) })
      await assert.rejects(bench.use(name, input, { idempotencyKey: 'k' }), crash)
      folders.of = real
      assert.equal(bench.read('a.txt'), 'old')

      const again = await bench.use(name, input, { idempotencyKey: 'k' })
      assert.equal(again.ok, true)
      assert.equal(bench.read('a.txt'), result)
    })

    test(`${name} does not overwrite what was written in between`, async () => {
      bench.write('a.txt', 'old')
      await bench.use(name, input, { idempotencyKey: 'k' })
      bench.write('a.txt', 'by a person')
      const again = await bench.use(name, input, { idempotencyKey: 'k' })
      assert.equal(again.ok, false)
      assert.equal(bench.read('a.txt'), 'by a person')
    })
  }

  test('what an interrupted write left beside the file is cleared away and never listed', async () => {
    const workspace = await bench.folders.of({ workspace: { dir: 'mine' } })
    bench.write('.polylog-k.tmp', 'half')
    const listed = await bench.use('fs_glob', { pattern: '**', dot: true })
    assert.deepEqual(listed.output.matches, [])
    await workspace.writeFile(workspace.locate('a.txt'), Buffer.from('whole'), 'k')
    assert.deepEqual(readdirSync(bench.directory), ['a.txt'])
  })
})

test('a cancelled call writes nothing', async () => {
  const stop = AbortSignal.abort(new Error('cancelled'))
  await assert.rejects(bench.use('fs_write', { path: 'a.txt', content: 'x' }, { signal: stop }), /cancelled/)
  assert.equal(existsSync(join(bench.directory, 'a.txt')), false)
})

describe('fs_glob', () => {
  test('finds files by a pattern, in the order of names, without hidden ones', async () => {
    for (const folder of ['src/inner', '.git', 'docs']) mkdirSync(join(bench.directory, folder), { recursive: true })
    for (const file of ['src/b.ts', 'src/a.ts', 'src/inner/c.ts', 'src/a.md', '.git/d.ts', 'docs/.e.ts', 'f.ts'])
      bench.write(file, '')
    const find = async (input: Record<string, string | number | boolean>) =>
      (await bench.use('fs_glob', input)).output.matches
    assert.deepEqual(await find({ pattern: '**/*.ts' }), ['f.ts', 'src/a.ts', 'src/b.ts', 'src/inner/c.ts'])
    assert.deepEqual(await find({ pattern: 'src/*.{ts,md}' }), ['src/a.md', 'src/a.ts', 'src/b.ts'])
    assert.deepEqual(await find({ pattern: '*.ts', cwd: 'src' }), ['a.ts', 'b.ts'])
    assert.deepEqual(await find({ pattern: '**/[de].ts', dot: true }), ['.git/d.ts'])
    const few = await bench.use('fs_glob', { pattern: '**/*.ts', limit: 2 })
    assert.equal(few.output.count, 2)
    assert.equal(few.output.truncated, true)
    assert.equal(few.modified, false)
  })
})

describe('fs_grep', () => {
  test('finds lines with their place; a text is a text and not a pattern', async () => {
    mkdirSync(join(bench.directory, 'src'))
    bench.write('src/a.ts', 'let x\n  call(a.b)\n')
    bench.write('b.md', 'callXaXb and Call(a.b)\n')
    writeFileSync(join(bench.directory, 'image.png'), Buffer.from('call(a.b)\0'))
    const plain = await bench.use('fs_grep', { pattern: 'call(a.b)' })
    assert.deepEqual(plain.output.matches, [{ path: 'src/a.ts', line: 2, column: 3, preview: '  call(a.b)' }])
    const loose = await bench.use('fs_grep', { pattern: 'call(a.b)', case_sensitive: false, path: '*.md' })
    assert.deepEqual(
      loose.output.matches.map(({ path, column }: Found) => [path, column]),
      [['b.md', 14]],
    )
    const regex = await bench.use('fs_grep', { pattern: 'call.a.b', regex: true })
    assert.deepEqual(
      regex.output.matches.map(({ path }: Found) => path),
      ['b.md', 'src/a.ts'],
    )
    const one = await bench.use('fs_grep', { pattern: 'l', path: 'src/a.ts', max_results: 1 })
    assert.equal(one.output.matches.length, 1)
    assert.equal(one.output.truncated, true)
    assert.equal((await bench.use('fs_grep', { pattern: '\\-x|let', regex: true })).output.matches.length, 1)
    assert.match((await bench.use('fs_grep', { pattern: '(', regex: true })).output.error, /not valid/)
    assert.match((await bench.use('fs_grep', { pattern: 'x', path: 'nope' })).output.error, /There is no file/)
  })

  test('a regular expression that takes a backtracking engine for ever is answered', async () => {
    bench.write('a.txt', `${'a'.repeat(40)}!\naaa\n`)
    const { output } = await bench.use('fs_grep', { pattern: '^(a+)+$', regex: true })
    assert.deepEqual(
      output.matches.map(({ line }: { line: number }) => line),
      [2],
    )
  })

  test('a regular expression that the engine does not have is refused with a reason', async () => {
    const { output } = await bench.use('fs_grep', { pattern: '(?=a)b', regex: true })
    assert.match(output.error, /not valid.*\(\?=/)
  })

  test('many searches at once share a few threads', async () => {
    bench.write('a.txt', 'abc\n')
    const searches = await Promise.all(
      Array.from({ length: 20 }, (_, number) => bench.use('fs_grep', { pattern: `a|${number}`, regex: true })),
    )
    assert.ok(searches.every(({ output }) => output.matches.length === 1))
  })
})

test('sentences for people say what a call is about to do', () => {
  const said = (name: string, input: object) => bench.registry.get(name)?.describe(input as never)
  assert.equal(said('fs_read', { path: 'a/b.txt' }), 'File operation read, path a/b.txt')
  assert.equal(said('fs_write', { path: 'a', content: '' }), 'File operation write, path a')
  assert.equal(
    said('fs_multi_edit', { edits: [{ path: 'a' }, { path: 'b' }, { path: 'a' }] }),
    'File operation multi-edit, path a, b',
  )
  assert.equal(said('fs_multi_edit', {}), 'File operation multi-edit, path ')
})

test('effect classes are what a retry may rely on', () => {
  const effects = Object.fromEntries(bench.registry.list().map(({ name, effect }) => [name, effect]))
  assert.deepEqual(effects, {
    fs_read: 'read',
    fs_write: 'idempotent',
    fs_edit: 'idempotent',
    fs_multi_edit: 'idempotent',
    fs_glob: 'read',
    fs_grep: 'read',
    bash_run: 'unsafe',
    bash_logs: 'read',
    bash_kill: 'idempotent',
    todo_read: 'read',
    todo_write: 'idempotent',
    skills: 'read',
  })
  for (const tool of bench.registry.available()) assert.equal(tool.confirm, 'never', tool.name)
})

test('a tool that needs a working directory fails loudly without one', async () => {
  const tool = bench.registry.get('fs_read')
  await assert.rejects(async () => tool?.run({ path: 'a' }, toolContext()), { code: 'internal_error' })
})
