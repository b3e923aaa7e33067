// The memory that a long answer needs: its text is passed on once. A process with a heap of five
// times the answer stores it, shows it and ends the run.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

test('an answer of 18 MB is stored, shown and ended within a heap of 96 MB', () => {
  const child = join(import.meta.dirname, '../support/long-answer-child.ts')

  const { stdout, stderr } = spawnSync(process.execPath, ['--max-old-space-size=96', child], { encoding: 'utf8' })

  assert.notEqual(stdout, '', stderr.slice(0, 2000))
  const told = JSON.parse(stdout) as Record<string, unknown>
  const length = told.asked as number
  assert.ok(length > 18_000_000)
  assert.deepEqual(told, {
    status: 'succeeded',
    asked: length,
    shown: length,
    message: length,
    // In the message, and not a second time in the event that ends the run.
    output: null,
    folded: length,
    stored: length,
    complaints: [],
  })
})
