// The log in front of the database: what is read after any cut, swap or mix-up of its files.

import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { systemClock } from '../../kit/clock.ts'
import { batchCharsMax, CommandLog, hasLog, logEndings, readLog } from './command-log.ts'

let folder: string
let file: string
const log0 = () => file + logEndings[0]
const log1 = () => file + logEndings[1]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-log-'))
  file = join(folder, 'polylog.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const state = { lineage: 7, applied: 0 }
/** The files are filled when they are opened, and read as a whole. */
const smallFile = 256 * 1024
const read = (applied = 0, lineage = state.lineage) => readLog(file, { lineage, applied })
const numbers = (applied = 0, lineage = state.lineage) => read(applied, lineage).map(({ number }) => number)

function append(log: CommandLog, value: string, synced = false): Promise<void> {
  const record = log.record(['name', value, 1], 0)
  assert.ok(record !== undefined)
  return new Promise((resolve, reject) =>
    log.append(record, synced, (error) => (error === null ? resolve() : reject(error))),
  )
}

describe('the log', () => {
  test('gives back what was written after the number that the database has, in order, from both files', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    await append(log, 'a')
    await append(log, 'b', true)
    log.swap(0)
    await append(log, 'ü\n"\u0001')
    await append(log, 'd', true)

    assert.deepEqual(
      read().map(({ values }) => values),
      ['a', 'b', 'ü\n"\u0001', 'd'].map((value) => ['name', value, 1]),
    )
    assert.deepEqual([numbers(0), numbers(1), numbers(3), numbers(4)], [[1, 2, 3, 4], [2, 3, 4], [4], []])
    log.close(false)
    assert.equal(hasLog(file), true)
  })

  test('gives back any strings and numbers as they were', async () => {
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'binary' }),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }),
    )
    const log = new CommandLog(file, state, systemClock, smallFile)
    let applied = 0
    await fc.assert(
      fc.asyncProperty(fc.array(value), async (values) => {
        log.swap(applied)
        const record = log.record(values, applied)
        assert.ok(record !== undefined)
        await new Promise((resolve) => log.append(record, false, resolve))
        assert.deepEqual(read(applied++), [{ number: applied, values }])
      }),
      { numRuns: 200 },
    )
    log.close(false)
  })

  test('is written by another thread for a while after the system made two writes wait', async () => {
    let now = 0
    let writeMs = 0
    // It is read before and after a write.
    const log = new CommandLog(file, state, { monotonic: () => (now += writeMs) })
    const isAtOnce = async (value: string) => {
      let isDone = false
      const writing = append(log, value).then(() => (isDone = true))
      await Promise.resolve()
      await Promise.resolve()
      const atOnce = isDone
      await writing
      return atOnce
    }
    assert.equal(await isAtOnce('a'), true)
    writeMs = 20
    assert.equal(await isAtOnce('b'), true)
    assert.equal(await isAtOnce('c'), true)
    writeMs = 0
    assert.equal(await isAtOnce('d'), false)
    now += 10_000
    assert.equal(await isAtOnce('e'), true)
    assert.deepEqual(numbers(), [1, 2, 3, 4, 5])
    log.close(false)
  })

  test('uses a file again only if the database has all that it holds', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    await append(log, 'a')
    log.swap(0)
    await append(log, 'b')
    log.swap(0)
    await append(log, 'c')
    assert.deepEqual(numbers(), [1, 2, 3], 'the database has nothing yet, so nothing was overwritten')

    log.swap(1)
    await append(log, 'd')
    assert.deepEqual(numbers(1), [2, 3, 4])
    log.close(true)
    assert.equal(hasLog(file), false)
  })

  test('a file that is swapped while a record is being written keeps that record', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    const writing = append(log, 'a', true)
    log.swap(0)
    await Promise.all([writing, append(log, 'b', true)])

    assert.deepEqual(numbers(), [1, 2])
    log.close(false)
  })

  test('what is left in a file from its last use is not read', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    for (const value of ['a', 'b', 'c', 'd']) await append(log, value)
    log.swap(4)
    await append(log, 'e')
    log.swap(5)
    await append(log, 'f')

    // b, c and d still stand behind f.
    assert.deepEqual(numbers(5), [6])
    assert.deepEqual(numbers(4), [5, 6])
    log.close(false)
  })

  test('of another database, or of a later state of this one, is not read', async () => {
    const log = new CommandLog(file, { lineage: 7, applied: 10 }, systemClock)
    await append(log, 'a', true)
    log.close(false)

    assert.deepEqual(numbers(10), [11])
    assert.deepEqual(numbers(10, 8), [], 'another database')
    assert.deepEqual(numbers(3), [], 'a backup from before: what came between is missing')
    rmSync(log1())
    assert.deepEqual(numbers(10), [11])
    rmSync(log0())
    assert.deepEqual(numbers(10), [])
  })

  test('refuses a record that is too large', () => {
    const log = new CommandLog(file, state, systemClock)
    assert.equal(log.record(['name', 'x'.repeat(1_700_000)], 0), undefined)
    assert.equal(log.record(['name', 'ü'.repeat(850_000)], 0), undefined, 'its bytes count, not its characters')
    assert.ok(log.record(['name', '語'.repeat(batchCharsMax)], 0) !== undefined, 'a batch always fits')
    log.close(false)
  })

  test('refuses a record if both files are full, and takes it when the database has what one of them holds', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    const value = 'x'.repeat(100_000)
    const hasRoom = (applied: number) => log.record(['name', value, 1], applied) !== undefined
    assert.deepEqual([hasRoom(0), log.isHalfFull], [true, false])
    await append(log, value)
    await append(log, value)
    assert.equal(log.isHalfFull, true)
    assert.equal(hasRoom(0), true, 'the other file is empty')
    await append(log, value)
    await append(log, value)
    assert.deepEqual([hasRoom(0), hasRoom(1)], [false, false])
    assert.deepEqual(numbers(), [1, 2, 3, 4])

    assert.equal(hasRoom(2), true)
    await append(log, value)
    assert.deepEqual(numbers(2), [3, 4, 5])
    log.close(false)
  })

  test('is slow after two long writes in a row or one very long one, and no more after ten seconds', async () => {
    let now = 0
    let writeMs = 0
    // A write asks for the time before and after it, `isSlow` asks once.
    const clock = { monotonic: () => (now += writeMs) }
    const log = new CommandLog(file, state, clock)
    const wrote = async (ms: number) => {
      writeMs = ms
      const written = append(log, 'a')
      writeMs = 0
      await written
      return log.isSlow
    }
    assert.deepEqual([await wrote(2), await wrote(1), await wrote(2)], [false, false, false])
    assert.equal(await wrote(1), false)
    assert.equal(await wrote(5), false)
    assert.equal(await wrote(1), false, 'a single one')
    assert.equal(await wrote(5), false)
    assert.equal(await wrote(5), true)
    now += 10_000
    assert.equal(log.isSlow, false)
    assert.equal(await wrote(1), false)
    assert.equal(await wrote(60), true)
    log.close(false)
  })

  test('cut anywhere gives back a beginning of what was written, and never anything else', async () => {
    const log = new CommandLog(file, state, systemClock, smallFile)
    const values = Array.from({ length: 12 }, (_, index) => `value ${index} `.repeat(index + 1))
    const ends: number[] = []
    let end = 0
    for (const value of values) {
      end += log.record(['name', value, 1], 0)?.length ?? 0
      ends.push(end)
      await append(log, value)
    }
    log.close(false)
    const whole = join(folder, 'whole')
    copyFileSync(log0(), whole)
    const expected = read().map(({ values: [, value] }) => value)
    assert.deepEqual(expected, values)

    fc.assert(
      fc.property(fc.nat(end), fc.constantFrom('cut', 'zeros', 'flipped'), (at, how) => {
        copyFileSync(whole, log0())
        if (how === 'cut') truncateSync(log0(), at)
        else {
          const bytes = readFileSync(log0())
          if (how === 'zeros') bytes.fill(0, at)
          else bytes[at] = (bytes[at] as number) ^ 0x5a
          writeFileSync(log0(), bytes)
        }
        const kept = read().map(({ values: [, value] }) => value)
        const before = ends.filter((one) => one <= at).length
        assert.deepEqual(kept.slice(0, before), values.slice(0, before), 'what stands before the damage is there')
        assert.deepEqual(kept, values.slice(0, kept.length))
        // A flipped byte behind the last record, or zeros in its place, damage nothing.
        assert.ok(kept.length <= before + 1)
      }),
      { numRuns: 300 },
    )
  })
})
