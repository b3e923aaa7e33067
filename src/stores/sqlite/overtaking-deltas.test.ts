// The queue with a log, against a simulated writer: deltas whose results are certain are acknowledged before
// commands that wait for a sync or for the database, unless such a command may change their runs.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claimOne, endOf, LoggedQueue, tailRow } from '../../../test/support/logged-queue.ts'
import { applyMs } from './logged-commits.ts'

let given: LoggedQueue
let clock: LoggedQueue['clock']
let sent: LoggedQueue['writer']['sent']
let stored: LoggedQueue['stored']
let queue: LoggedQueue['queue']
let log: LoggedQueue['log']

beforeEach(() => {
  given = new LoggedQueue()
  ;({ clock, stored, queue, log } = given)
  sent = given.writer.sent
})
afterEach(() => given.remove())

const accept = (runId: string, changes?: object) => given.accept(runId, changes)
const delta = (runId: string, seq: number, epoch?: number) => given.delta(runId, seq, epoch)
const done = (reply?: object) => given.writer.done(reply)
const failed = (more?: object) => given.failed(more)
const batchAt = (index: number) => given.writer.batchAt(index)
const events = (index: number) => given.events(index)
const inLog = (after?: number) => given.inLog(after)
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('many deltas in one turn of the event loop', () => {
  const manyDeltas = 130
  const runs = Array.from({ length: manyDeltas }, (_, index) => `s${index}`)

  test('are not gathered until its end: 64 share a record, and are acknowledged before the others come', async () => {
    await Promise.all(runs.map((run) => accept(run)))
    const before = inLog()
    const seen: number[] = []
    const waiting = runs.map((run) => {
      const written = delta(run, 2)
      seen.push(inLog() - before)
      return written
    })
    assert.deepEqual([seen[62], seen[63], seen[126], seen[127], seen[129]], [0, 1, 1, 2, 2])
    await Promise.all(waiting)
    assert.equal(inLog() - before, 3)
    assert.deepEqual(
      stored.slice(manyDeltas).map(([row]) => row.runId),
      runs,
    )
  })

  test('do not wait for a command before them that needs a sync', async () => {
    await Promise.all(runs.map((run) => accept(run)))
    const before = inLog()
    let isAccepted = false
    const last = accept('r1').then(() => (isAccepted = true))
    const waiting = runs.map((run) => delta(run, 2))
    assert.equal(inLog() - before, 2)
    await Promise.all(waiting)
    assert.equal(isAccepted, false)
    await last
    assert.equal(inLog() - before, 4)
  })

  test('do not wait for a command before them that needs the database', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const claiming = queue.run('claim', claimOne)
    await Promise.all([delta('r1', 2), delta('r2', 2)])
    assert.deepEqual(events(0), ['r1 1', 'r2 1', 'r1 2', 'r2 2'])
    assert.equal(batchAt(0).values.at(-3), 'claim')
    done({ results: [[0, []]] })
    await claiming
    assert.equal(queue.isApplied, true)
  })

  test('go to the database in their order, each once, if the log is full', async () => {
    await Promise.all(runs.map((run) => accept(run)))
    log.record = () => undefined
    const waiting = Promise.all(runs.map((run) => delta(run, 2)))
    // The first 64 are a batch of their own, behind the commands that only the log has; the rest follow.
    for (let answered = 0; answered < 3; answered++) {
      await turn()
      done()
    }
    await waiting
    const written = sent.flatMap((batch) => (typeof batch === 'object' && 'values' in batch ? batch.values : []))
    assert.deepEqual(
      written.filter((value) => /^s\d+ 2$/.test(String(value))),
      runs.map((run) => `${run} 2`),
    )
  })
})

describe('while a batch is with the writer', () => {
  test('deltas pass it if it leaves their runs alone, and are executed after it', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const renewing = queue.run('renewLeases', { node: 'n', leaseUntil: 9, leaseNow: 0, runIds: ['r1', 'r2'] })
    await turn()
    await delta('r1', 2)
    await Promise.all([delta('r1', 3), delta('r2', 2)])
    assert.deepEqual([sent.length, inLog(1)], [1, 2])

    const rows = ['r1', 'r2'].map((id) => ({ id, epoch: 1, lastSeq: 1, leaseOwner: 'n' }))
    done({ results: [[0, rows]] })
    await renewing
    await delta('r1', 4)
    assert.equal(sent.length, 1, 'rows from before the deltas do not count')
    await clock.advance(applyMs)
    assert.deepEqual(events(1), ['r1 2', 'r1 3', 'r2 2', 'r1 4'])
    assert.equal(batchAt(1).logged?.after, 1)
  })

  test('a batch that fails leaves the deltas that passed it acknowledged, and the database gets them', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const checked = queue.run('check', null)
    await turn()
    await delta('r1', 2)
    failed()
    await assert.rejects(checked, { code: 'store_unavailable' })
    await clock.advance(500)
    assert.deepEqual(events(1), ['r1 1', 'r2 1', 'r1 2'])
    done()
    assert.equal(queue.isApplied, true)
  })

  test('a delta waits for a batch that a power cut may lose', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    void queue.readable()
    done()
    given.mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    given.mayLog = true
    const waiting = delta('r2', 2)
    await turn()
    assert.equal(inLog(1), 0)
    done()
    await lossy
    await turn()
    assert.deepEqual([events(2), batchAt(2).durable], [['r2 2'], true])
    done()
    await waiting
  })
})

describe('while the log syncs a batch', () => {
  /** The next sync ends when the result is called. */
  function holdSync(): (error?: Error) => void {
    const sync = log.sync.bind(log)
    let end: (error: Error | null) => void = () => assert.fail('there was no sync')
    log.sync = (done) => {
      log.sync = sync
      end = done
    }
    return (error) => end(error ?? null)
  }

  test('deltas of other runs are acknowledged, and the writer gets everything in its order when the sync is done', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const sync = holdSync()
    const third = accept('r3')
    await turn()
    await delta('r1', 2)
    await Promise.all([delta('r1', 3), delta('r2', 2)])
    assert.equal(inLog(), 4)
    assert.deepEqual(
      stored.slice(2).map(([row]) => `${row.runId} ${row.lastSeq}`),
      ['r1 2', 'r1 3', 'r2 2'],
    )

    await clock.advance(applyMs)
    assert.deepEqual(
      events(0),
      ['r1 1', 'r2 1'],
      'what follows may not be executed without the batch that is being synced',
    )
    done()
    await clock.advance(500)
    assert.equal(sent.length, 1)

    sync()
    assert.equal((await third).outcome, 'accepted')
    await clock.advance(applyMs)
    assert.deepEqual(events(1), ['r3 1', 'r1 2', 'r1 3', 'r2 2'])
    assert.deepEqual(batchAt(1).logged?.after, 1)
    done()
    assert.equal(queue.isApplied, true)
  })

  test('a delta does not overtake a command of its own run, and one whose result is not certain waits', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const sync = holdSync()
    const third = accept('r3')
    await turn()
    const ended = queue.run('append', endOf('r1', 2), true, tailRow('r1', queue.tailId(), 2))
    const late = delta('r1', 3)
    const unknown = delta('r9', 2)
    const free = delta('r2', 2)
    await free
    assert.deepEqual(stored.at(-1)?.[0].runId, 'r2')
    assert.equal(inLog(), 3)

    sync()
    await third
    await turn()
    assert.deepEqual(events(0), ['r1 1', 'r2 1', 'r3 1', 'r2 2', 'r1 2', 'r1 3', 'r9 2'])
    for (const given of [ended, late, unknown]) given.catch(() => {})
  })

  test('nothing passes it while the disk is slow', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const sync = holdSync()
    const third = accept('r3')
    await turn()
    Object.defineProperty(log, 'isSlow', { get: () => true })
    const waiting = delta('r1', 2)
    await turn()
    await turn()
    assert.equal(inLog(), 2)
    sync()
    await Promise.all([third, waiting])
    assert.equal(inLog(), 3)
  })

  test('a sync that fails refuses its batch, and keeps the deltas that were acknowledged after it', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    const sync = holdSync()
    const third = accept('r3')
    await turn()
    await delta('r1', 2)
    sync(new Error('EIO'))
    await assert.rejects(third, { code: 'store_unavailable' })

    assert.deepEqual(events(0), ['r1 1', 'r2 1', 'r1 2'])
    assert.deepEqual(batchAt(0).logged?.number, 3)
    done()
    assert.equal(queue.isApplied, true)
  })
})
