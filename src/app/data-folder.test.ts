import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { prepareDatabaseFile, prepareDataFolder, prepareWorkspaceRoot, fileErrorReason } from './data-folder.ts'

let root: string
let umask: number

before(() => {
  root = mkdtempSync(join(tmpdir(), 'polylog-folder-'))
  // The widest there is: nothing may depend on a careful one.
  umask = process.umask(0)
})

after(() => {
  process.umask(umask)
  rmSync(root, { recursive: true, force: true })
})

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

function prepare(dir: string): string[] {
  const warnings: string[] = []
  const warn = (sentence: string) => warnings.push(sentence)
  prepareDataFolder(dir, warn)
  prepareDatabaseFile(dir, warn)
  return warnings
}

test('a folder that is missing is made for its user only, with its files, whatever the umask is', () => {
  const dir = join(root, 'a', 'new')

  prepareDataFolder(dir, assert.fail)
  assert.equal(prepareDatabaseFile(dir, assert.fail), join(dir, 'polylog.db'))
  assert.deepEqual([dir, join(dir, 'polylog.db'), join(dir, 'polylog.db.lock')].map(modeOf), ['700', '600', '600'])
})

test('a umask that takes rights from the user itself does not count either', () => {
  const dir = join(root, 'narrow')
  process.umask(0o277)
  try {
    prepare(dir)
  } finally {
    process.umask(0)
  }
  assert.deepEqual([dir, join(dir, 'polylog.db')].map(modeOf), ['700', '600'])
})

test('a folder of ours that others could read is closed to them, with everything of the database in it', () => {
  const dir = join(root, 'old')
  mkdirSync(dir, 0o755)
  const files = ['polylog.db', 'polylog.db-wal', 'polylog.db-shm', 'polylog.db.lock'].map((name) => join(dir, name))
  for (const file of files) writeFileSync(file, 'as it was', { mode: 0o644 })

  assert.deepEqual(prepare(dir), [])
  assert.deepEqual([dir, ...files].map(modeOf), ['700', '600', '600', '600', '600'])
  assert.equal(statSync(files[0] as string).size, 9)
})

test('a folder with other things in it keeps its rights, and a warning says what to do', () => {
  const dir = join(root, 'shared')
  mkdirSync(dir)
  chmodSync(dir, 0o755)
  writeFileSync(join(dir, 'somebody-elses.txt'), '')

  const [warning, ...rest] = prepare(dir)

  assert.match(warning ?? '', /may read the data folder .*chmod 700/)
  assert.deepEqual(rest, [])
  assert.equal(modeOf(dir), '755')
  assert.equal(modeOf(join(dir, 'polylog.db')), '600')
})

test('a folder that is a file, or lies below one, is refused with a sentence', () => {
  const file = join(root, 'file')
  writeFileSync(file, '')
  symlinkSync(join(root, 'nowhere'), join(root, 'dangling'))

  assert.throws(() => prepare(file), { code: 'config_invalid', message: /is a file; set POLYLOG_DATA to a folder/ })
  assert.throws(() => prepare(join(file, 'below')), { code: 'config_invalid', message: /set POLYLOG_DATA/ })
  assert.throws(() => prepare(join(root, 'dangling')), { code: 'config_invalid', message: /set POLYLOG_DATA/ })
  assert.throws(() => prepare('/proc/polylog'), {
    code: 'config_invalid',
    message: /cannot be used: .*set POLYLOG_DATA/,
  })
})

test('a database that is a folder is refused with a sentence', () => {
  const dir = join(root, 'odd')
  mkdirSync(join(dir, 'polylog.db'), { recursive: true })

  assert.throws(() => prepare(dir), { code: 'config_invalid', message: /polylog\.db cannot be used: it is a folder/ })
})

test('an error of the system becomes a reason and advice', () => {
  const reason = (code: string) => fileErrorReason(Object.assign(new Error('x'), { code }))

  assert.match(reason('EROFS'), /read-only; set POLYLOG_DATA/)
  assert.match(reason('EACCES'), /may not write there; set POLYLOG_DATA/)
  assert.match(reason('ENOSPC'), /disk is full/)
  assert.match(reason('EWEIRD'), /EWEIRD; set POLYLOG_DATA/)
})

test('a workspace inside the data folder is closed to others; one elsewhere is its owner’s choice, and is mentioned', () => {
  const data = join(root, 'with-workspace')
  const inside = join(data, 'workspace')
  const elsewhere = join(root, 'with-workspace-elsewhere')
  for (const dir of [inside, elsewhere]) {
    mkdirSync(dir, { recursive: true })
    chmodSync(dir, 0o755)
  }
  const warnings: string[] = []
  const warn = (sentence: string) => void warnings.push(sentence)

  prepareWorkspaceRoot(inside, data, warn)
  assert.deepEqual([modeOf(inside), warnings], ['700', []])
  prepareWorkspaceRoot(elsewhere, data, warn)
  assert.equal(modeOf(elsewhere), '755')
  assert.match(warnings[0] ?? '', /may read the workspace/)
  prepareWorkspaceRoot(join(root, 'missing'), data, assert.fail)
})
