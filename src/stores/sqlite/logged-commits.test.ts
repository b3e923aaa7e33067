// The queue with a log, against a simulated writer: which batches are acknowledged from the log, how they
// are written, and what becomes of them if the log cannot be written.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claimOne, endOf, LoggedQueue, tailRow } from '../../../test/support/logged-queue.ts'
import { AppError } from '../../errors/app-error.ts'
import { batchCharsMax } from './command-log.ts'
import { toFailure } from './commands.ts'
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
const batchAt = (index: number) => given.writer.batchAt(index)
const events = (index: number) => given.events(index)
const loggedIn = (index: number) => given.loggedIn(index)
const inLog = (after?: number) => given.inLog(after)
const turn = () => new Promise((resolve) => setImmediate(resolve))

const inConversation = {
  id: 'r1',
  owner: 'ada',
  family: 'agent',
  agentId: 'a',
  conversationId: 'c1',
  createdAt: 1,
}

describe('a batch whose results are certain', () => {
  test('is acknowledged from the log, and the writer gets it later, with others', async () => {
    const { outcome, run } = await accept('r1')
    await delta('r1', 2)
    await Promise.all([delta('r1', 3), accept('r2')])

    assert.deepEqual([outcome, run.id, run.epoch, run.lastSeq], ['accepted', 'r1', 1, 1])
    assert.deepEqual(
      stored.map(([row, body]) => [row.runId, row.lastSeq, body]),
      [
        ['r1', 1, 'r1 1'],
        ['r1', 2, 'r1 2'],
        ['r1', 3, 'r1 3'],
        ['r2', 1, 'r2 1'],
      ],
    )
    assert.deepEqual([sent.length, inLog(), queue.isApplied], [0, 4, false])

    await clock.advance(applyMs)
    assert.deepEqual(events(0), ['r1 1', 'r1 2', 'r1 3', 'r2 1'])
    assert.deepEqual([loggedIn(0), batchAt(0).values], [{ records: 4, after: 0, number: 4 }, []])
    const bodies = () => stored.map(([row]) => queue.loggedBody(row.id))
    assert.deepEqual(bodies(), ['r1 1', 'r1 2', 'r1 3', 'r2 1'], 'they are read here until the writer has answered')
    done()
    assert.deepEqual([queue.isApplied, sent.length], [true, 1])
    assert.deepEqual(bodies(), [undefined, undefined, undefined, undefined])
  })

  test('goes to the writer at once when the log has many changes, because a read waits for all of them', async () => {
    await accept('r1')
    for (let index = 0; index < 250; index += 1) {
      assert.equal(sent.length, 0)
      await Promise.all([accept(`a${index}`), accept(`b${index}`)])
    }
    assert.equal(sent.length, 1)
    const accepts = given.writer
      .loggedAt(0)
      .flat()
      .filter((value) => value === 'accept')
    assert.equal(accepts.length, 501)
  })

  test('with deltas of a run on both sides of a barrier of that run keeps their order', async () => {
    await accept('r1')
    await delta('r1', 2)
    const barrier = { ...endOf('r1', 3), run: { status: 'running' as const } }
    await queue.run('append', barrier, true, tailRow('r1', queue.tailId(), 3))
    await delta('r1', 4)
    await Promise.all([accept('r2'), delta('r1', 5)])
    await clock.advance(applyMs)

    assert.deepEqual(events(0), ['r1 1', 'r1 2', 'r1 3', 'r1 4', 'r1 5', 'r2 1'])
  })

  test('goes to the writer if the run is not known, or not as the command says', async () => {
    await accept('r1')
    void delta('r1', 2, 9).catch(() => {})
    await turn()
    assert.deepEqual(events(0), ['r1 1', 'r1 2'], 'the epoch is another one')
    done({ failures: [[0, toFailure(new AppError('run_fenced', 'no'))]] })

    void delta('r1', 2).catch(() => {})
    await turn()
    assert.equal(sent.length, 2, 'a run of which a command was refused is not known any more')
    done()
    void delta('r2', 1).catch(() => {})
    await turn()
    assert.equal(sent.length, 3, 'it was never claimed')
  })

  test('goes to the writer if the database has to look at more than the run', async () => {
    const cold = [
      { idempotency: { key: 'k', route: 'r', fingerprint: 'f' } },
      { claim: null },
      { expectBehind: 'r0' },
      { conversation: { expect: 'present', title: null, name: null } },
      { conversation: { expect: 'absent', title: null, name: 'mine' } },
      { conversation: { expect: 'absent', title: null, name: null, alias: 'mine' } },
      { joinTurnOf: 'r0' },
      { held: {} },
      { reuse: { cacheKey: 'k' } },
      { share: { key: 'k' } },
      { blobs: [{ id: 'b', body: '' }] },
      { files: ['f'] },
    ]
    for (const [index, changes] of cold.entries()) {
      void accept('r1', { ...(changes.conversation === undefined ? {} : { run: inConversation }), ...changes })
      await turn()
      assert.equal(sent.length, index + 1, JSON.stringify(changes))
      done({ results: [[0, { outcome: 'accepted', run: {} }]] })
      await turn()
    }
    await accept('r1', {
      run: inConversation,
      conversation: { expect: 'absent', title: null, name: null, unnamed: true },
      cancelEarlier: { by: 'ada', reason: null, at: 1 },
    })
    assert.equal(sent.length, cold.length, 'a new conversation without a name is certain, and has no run to cancel')
  })

  test('goes to the writer if all slots may be taken, or if the disk has little room', async () => {
    const slots = { claim: { node: 'n', leaseUntil: 9000, leaseNow: 0, slots: 1 } }
    await accept('r1', slots)
    void accept('r2', slots)
    await turn()
    assert.deepEqual(events(0).length, 2)
    done({ results: [[0, { outcome: 'accepted', run: { id: 'r2', leaseOwner: null, epoch: 0, lastSeq: 1 } }]] })
    await turn()

    given.mayLog = false
    void delta('r1', 2)
    await turn()
    assert.equal(sent.length, 2)
  })

  test('goes to the writer after a batch there that a power cut may lose, until one there is synced', async () => {
    await accept('r1')
    void queue.readable()
    done()
    given.mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    assert.deepEqual([batchAt(1).durable, batchAt(1).logged], [false, undefined])
    done()
    await lossy
    given.mayLog = true

    const uncertain = delta('r1', 2, 9)
    await turn()
    assert.deepEqual([events(2), batchAt(2).durable], [['r1 2'], false], 'it could not be logged in any case')
    done({ failures: [[0, toFailure(new AppError('run_fenced', 'no'))]] })
    await assert.rejects(uncertain, { code: 'run_fenced' })
    const second = accept('r2')
    const lost = delta('r2', 2)
    await turn()
    assert.equal(sent.length, 4, 'a record of the log could not be executed without the events before it')
    done({ results: [[0, { outcome: 'accepted', run: { id: 'r2', leaseOwner: 'n', epoch: 1, lastSeq: 1 } }]] })
    await Promise.all([second, lost])
    await delta('r2', 3)
    assert.deepEqual([sent.length, inLog(1)], [4, 1])
  })

  test('is synced by the writer if it could be logged but for such a batch, so that the next one is', async () => {
    await accept('r1')
    void queue.readable()
    done()
    given.mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    done()
    await lossy
    given.mayLog = true

    const second = delta('r1', 3)
    await turn()
    assert.deepEqual([sent.length, batchAt(2).durable], [3, true])
    done()
    await second
    await delta('r1', 4)
    assert.deepEqual([sent.length, inLog(1)], [3, 1])
  })

  test('is known again when a run is claimed by the writer', async () => {
    const claiming = queue.run('claim', claimOne)
    await turn()
    done({ results: [[0, [{ id: 'r1', epoch: 3, lastSeq: 4, leaseOwner: 'n' }]]] })
    await claiming
    await delta('r1', 5, 3)
    await queue.run(
      'append',
      {
        runId: 'r1',
        epoch: 3,
        afterSeq: 5,
        journal: { id: queue.tailId(), lastSeq: 6, body: 'r1 6' },
        run: { status: 'succeeded', release: true },
      },
      true,
    )
    assert.equal(sent.length, 1)

    void delta('r1', 7, 3).catch(() => {})
    await turn()
    assert.equal(sent.length, 2, 'nothing is certain after the end')
  })
})

describe('commands that are too much for one record', () => {
  const text = 'x'.repeat(batchCharsMax / 2 - 2000)
  const large = (runId: string, seq: number) =>
    queue.appendDelta(tailRow(runId, queue.tailId(), seq), 1, `${runId} ${seq} ${text}`, false)

  test('are written as several records, and do not go to the database', async () => {
    await Promise.all([accept('r1'), accept('r2'), accept('r3')])
    await Promise.all([large('r1', 2), large('r2', 2), large('r3', 2)])
    assert.deepEqual([sent.length, inLog()], [0, 3])
  })

  const ended = ['r1', 'r2', 'r3']
  const end = (runId: string) =>
    queue.run('append', { ...endOf(runId, 2), journal: { id: 99, lastSeq: 2, body: `${runId} 2 ${text}` } }, true)

  test('share one sync, and are acknowledged in their order when it is done', async () => {
    await Promise.all(ended.map((runId) => accept(runId)))
    const sync = log.sync.bind(log)
    let syncs = 0
    const order: string[] = []
    log.sync = (done) => {
      syncs += 1
      assert.deepEqual([inLog(), order], [3, []], 'all of them are written')
      sync(done)
    }
    await Promise.all(ended.map((runId) => end(runId).then(() => order.push(runId))))
    assert.deepEqual([sent.length, syncs, order], [0, 1, ended])
  })

  test('are all refused if one of them cannot be written, and those that were written are never executed', async () => {
    await Promise.all(ended.map((runId) => accept(runId)))
    const append = log.append.bind(log)
    log.append = (record, synced, written) => {
      log.append = (_record, _synced, refused) => refused(new Error('EIO'))
      append(record, synced, written)
    }
    const settled = Promise.allSettled(ended.map(end))
    await turn()
    done()
    const results = await settled
    assert.deepEqual(
      results.slice(0, 2).map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.deepEqual(events(0), ['r1 1', 'r2 1', 'r3 1'])
    assert.equal(batchAt(0).logged?.number, 3)
  })

  test('are followed by a command that only the database can execute', async () => {
    await Promise.all(ended.map((runId) => accept(runId)))
    const ends = Promise.all(ended.map(end))
    const claiming = queue.run('claim', claimOne)
    await ends
    await turn()
    assert.deepEqual([sent.length, batchAt(0).values.at(-3)], [1, 'claim'])
    assert.equal(batchAt(0).logged?.number, 3)
    done({ results: [[0, []]] })
    await claiming
  })

  test('use the file again that the database has, after both were full', async () => {
    await Promise.all([accept('r1'), accept('r2')])
    let seq = 1
    while (sent.length < 2) {
      void large('r1', (seq += 1))
      await turn()
      assert.ok(seq < 50)
    }
    const { values, logged } = batchAt(1)
    assert.ok(values.length > 0, 'there was no room for the last one')
    done()
    done()
    await turn()
    assert.equal(queue.isApplied, true)
    await large('r1', seq + 1)
    assert.deepEqual([sent.length, inLog(logged?.number)], [2, 1])
  })
})

test('a log that cannot be written refuses the batch, is not used any more, and the record is never executed', async () => {
  await accept('r1')
  log.append = (_record, _synced, written) => written(new Error('EIO'))
  await assert.rejects(delta('r1', 2), { code: 'store_unavailable' })
  assert.deepEqual([loggedIn(0), events(0)], [{ records: 1, after: 0, number: 2 }, ['r1 1']])
  done()

  void delta('r1', 2).catch(() => {})
  await turn()
  assert.equal(sent.length, 2)
  assert.equal(batchAt(1).logged, undefined)
})
