import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileState, type FileState, WatchedFiles } from './watched-files.ts'

describe('watched files', () => {
  function watched(states: Record<string, FileState>): WatchedFiles {
    const files = new WatchedFiles((path) => states[path] ?? null)
    for (const [path, state] of Object.entries(states)) files.add(path, state)
    return files
  }

  test('have changed if one has, until they are read again', () => {
    const states: Record<string, FileState> = { a: '1', b: '1' }
    const files = watched(states)
    assert.equal(files.hasChanged(), false)
    states['b'] = '2'
    assert.deepEqual([files.hasChanged(), files.hasChanged()], [true, true])
    files.refresh()
    assert.equal(files.hasChanged(), false)
  })

  test('have changed if one did after it was read and before the watcher heard of it', () => {
    const files = new WatchedFiles(() => 'new')
    files.add('a', 'old')
    assert.equal(files.hasChanged(), true)
  })

  test('keep the state from before the start that failed', () => {
    const states: Record<string, FileState> = { a: '1' }
    const files = watched(states)
    states['a'] = '2'
    files.add('a', '2')
    assert.equal(files.hasChanged(), true)
  })

  test('may be missing for a moment while an editor replaces one', () => {
    const states: Record<string, FileState> = { a: '1' }
    const files = watched(states)
    states['a'] = null
    assert.equal(files.hasChanged(), false)
    states['a'] = '1'
    assert.equal(files.hasChanged(), false)
    states['a'] = null
    assert.deepEqual([files.hasChanged(), files.hasChanged()], [false, true])
    files.refresh()
    assert.deepEqual([files.hasChanged(), files.hasChanged()], [false, false])
    states['a'] = '2'
    assert.equal(files.hasChanged(), true, 'it is back')
  })
})

describe('the state of a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-watched-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('differs if it is written, replaced by another of its size, or removed', () => {
    const file = join(folder, 'file')
    const states: FileState[] = [fileState(file)]
    const note = () => states.push(fileState(file))
    writeFileSync(file, 'one')
    note()
    assert.equal(fileState(file), states.at(-1))
    writeFileSync(file, 'three')
    note()
    writeFileSync(join(folder, 'other'), 'three')
    renameSync(join(folder, 'other'), file)
    note()
    assert.equal(new Set(states).size, 4)
    rmSync(file)
    assert.equal(fileState(file), null)
  })
})
