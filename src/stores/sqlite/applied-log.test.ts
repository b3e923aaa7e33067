// The queue with a log, against a simulated writer: when the writer gets the commands that only the log has,
// and that none is lost, repeated or out of order if the writer fails.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claimOne, LoggedQueue } from '../../../test/support/logged-queue.ts'
import { hasLog } from './command-log.ts'
import { applyMs } from './logged-commits.ts'

let given: LoggedQueue
let clock: LoggedQueue['clock']
let sent: LoggedQueue['writer']['sent']
let folded: LoggedQueue['folded']
let queue: LoggedQueue['queue']

beforeEach(() => {
  given = new LoggedQueue()
  ;({ clock, folded, queue } = given)
  sent = given.writer.sent
})
afterEach(() => given.remove())

const accept = (runId: string, changes?: object) => given.accept(runId, changes)
const delta = (runId: string, seq: number, epoch?: number) => given.delta(runId, seq, epoch)
const say = (message: object) => given.writer.say(message)
const done = (reply?: object) => given.writer.done(reply)
const failed = (more?: object) => given.failed(more)
const batchAt = (index: number) => given.writer.batchAt(index)
const events = (index: number) => given.events(index)
const loggedIn = (index: number) => given.loggedIn(index)
const inLog = (after?: number) => given.inLog(after)
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('the writer', () => {
  test('has all about a run when it has executed the last batch about it, and not before', async () => {
    await accept('r1')
    await clock.advance(applyMs)
    await accept('r2')
    assert.deepEqual([queue.isReadable('r1'), queue.isReadable('r2'), queue.isReadable('r3')], [false, false, true])
    done()
    assert.deepEqual([queue.isReadable('r1'), queue.isReadable('r2')], [true, false])
    void queue.readable('r2')
    await turn()
    done()
    assert.equal(queue.isReadable('r2'), true)
  })

  test('gets the commands of the log in front of the next batch that needs it', async () => {
    await accept('r1')
    await delta('r1', 2)
    const claiming = queue.run('claim', claimOne)
    await turn()

    const { values } = batchAt(0)
    assert.deepEqual([values.length, values[0], values.at(-1)], [3, 'claim', 0])
    assert.deepEqual(loggedIn(0), { records: 2, after: 0, number: 2 })
    const third = delta('r1', 3)
    await turn()
    assert.equal(inLog(), 2, 'nothing overtakes a batch at the writer that may change any run')
    done({ results: [[0, []]] })
    await claiming
    await third
    assert.equal(inLog(2), 1)
  })

  test('gets them at once if somebody reads, and the reader waits for them', async () => {
    await accept('r1')
    let isRead = false
    const reading = queue.readable().then(() => (isRead = true))
    assert.deepEqual([events(0), isRead], [['r1 1'], false])
    await accept('r2')
    const second = queue.readable()
    assert.equal(sent.length, 1, 'one message with commands of the log at a time')
    done()
    await reading
    assert.deepEqual(events(1), ['r2 1'])
    done()
    await second
    await delta('r1', 2)
    assert.deepEqual([queue.isReadable(), queue.isApplied], [true, false], 'deltas change no row')
  })

  test('gets what came while it executed others half a second later, also if nothing follows', async () => {
    await accept('r1')
    await clock.advance(applyMs)
    await delta('r1', 2)
    await clock.advance(applyMs)
    assert.equal(sent.length, 1, 'it is still at work')
    done()
    await clock.advance(applyMs)
    assert.deepEqual(events(1), ['r1 2'])
    done()
    assert.equal(queue.isApplied, true)
  })

  test('that fails gets them again, in their order, and nothing is acknowledged before', async () => {
    await accept('r1')
    const reading = queue.readable()
    await delta('r1', 2)
    failed()
    await assert.rejects(reading, { code: 'store_unavailable' })
    assert.equal(queue.isApplied, false)

    const waiting = delta('r1', 3)
    await turn()
    assert.deepEqual(events(1), ['r1 1', 'r1 2', 'r1 3'])
    assert.equal(loggedIn(1).records, 2)
    failed()
    await assert.rejects(waiting, { code: 'store_unavailable' })
    await clock.advance(500)
    assert.deepEqual(events(2), ['r1 1', 'r1 2'], 'they are tried again by themselves')
    done()
    assert.equal(queue.isApplied, true)
  })

  test('that fails twice in a row gets everything again in its order', async () => {
    await accept('r1')
    const reading = queue.readable()
    await delta('r1', 2)
    const checked = queue.run('check', null)
    await turn()
    assert.deepEqual([events(0), events(1)], [['r1 1'], ['r1 2']])
    assert.equal(batchAt(1).logged?.after, 1, 'the second says what it needs, so it fails with the first')
    failed()
    failed()
    await assert.rejects(reading, { code: 'store_unavailable' })
    await assert.rejects(checked, { code: 'store_unavailable' })

    const again = queue.run('check', null)
    await turn()
    assert.deepEqual(events(2), ['r1 1', 'r1 2'])
    assert.deepEqual([batchAt(2).logged?.after, batchAt(2).logged?.number], [0, 2])
    done()
    await again
    assert.equal(queue.isApplied, true)
  })

  test('gets a batch after commands of the log that are on their way, and is told that it needs them', async () => {
    await accept('r1')
    const reading = queue.readable()
    const checked = queue.run('check', null)
    await turn()
    assert.deepEqual([batchAt(1).logged, batchAt(1).needsLog], [undefined, 1])
    done()
    done()
    await Promise.all([reading, checked])

    void queue.run('check', null)
    await turn()
    assert.equal(batchAt(2).needsLog, undefined)
  })

  test('that could only execute what was acknowledged says so', async () => {
    await accept('r1')
    const checked = queue.run('check', null)
    await turn()
    failed({ applied: { type: 'done', failures: [], results: [], folded: [['r1', 1]] } })
    await assert.rejects(checked, { code: 'store_unavailable' })

    assert.equal(queue.isApplied, true)
    assert.deepEqual(folded, [['r1', 1]], 'the row in the tail is not there')
    await queue.readable()
    assert.equal(sent.length, 1)
  })

  test('gets everything before it is closed, and the files of the log are removed', async () => {
    await accept('r1')
    const closing = queue.close()
    assert.deepEqual([events(0), sent[1]], [['r1 1'], 'close'])
    done()
    say({ type: 'closed' })
    await closing
    assert.equal(hasLog(given.file), false)
  })

  test('that cannot be written when it is closed leaves the log for the next start', async () => {
    await accept('r1')
    const closing = queue.close()
    failed()
    say({ type: 'closed' })
    await closing
    assert.equal(inLog(), 1)
  })
})
