// What is kept of the output of a command, and what people are shown of it meanwhile.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { LineProgress, ShellOutput } from './shell-output.ts'

const kept = 200_000

test('a command that never stops writing takes a bounded amount of memory', () => {
  const output = new ShellOutput()
  const piece = Buffer.from('x'.repeat(64 * 1024))
  let most = 0
  for (let pieces = 0; pieces < 2_000; pieces += 1) {
    output.add(pieces % 2 === 0 ? 'stdout' : 'stderr', piece)
    most = Math.max(most, output.heldChars)
  }

  assert.ok(most <= 3 * kept + piece.length, `${most} characters were held`)
  assert.ok(output.text().length <= 2 * kept + 100)
})

test('one piece that is larger than all that is kept is cut at once', () => {
  const output = new ShellOutput()
  output.add('stdout', Buffer.from(`begin${'x'.repeat(5_000_000)}end`))

  assert.ok(output.heldChars <= 2 * kept, `${output.heldChars} characters are held`)
  assert.match(output.text(), /^beginx[^]*xend$/)
})

test('the beginning and the end are whole, and what is left out is counted', () => {
  const output = new ShellOutput()
  for (let line = 0; line < 100_000; line += 1) output.add('stdout', Buffer.from(`line ${line}\n`))
  const text = output.text()
  const all = Array.from({ length: 100_000 }, (_, line) => `line ${line}\n`).join('')
  const [, before = '', left = '', after = ''] = /^([^]*)\n\[… (\d+) characters left out …\]\n([^]*)$/.exec(text) ?? []

  assert.equal(before, all.slice(0, kept))
  assert.equal(after, all.slice(-kept))
  assert.equal(before.length + Number(left) + after.length, all.length)
})

test('a character that is cut between two pieces arrives whole', () => {
  const output = new ShellOutput()
  const bytes = Buffer.from('é世🌍')
  for (const byte of bytes) output.add('stdout', Uint8Array.of(byte))

  assert.equal(output.text(), 'é世🌍')
})

test('people are shown a bounded part of a flood', async () => {
  const clock = manualClock()
  let shown = 0
  const progress = new LineProgress(clock, (message) => (shown += message.length))
  for (let round = 0; round < 500; round += 1) {
    progress.add(`${'x'.repeat(100)}\n`.repeat(100))
    await clock.advance(200)
  }
  progress.end()

  assert.ok(shown < 250_000, `${shown} characters were shown`)
})
