// The queue with a log, against a simulated writer: which batches are acknowledged from the log, when
// the writer gets them, and that none is lost, repeated or out of order if the writer fails.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { acceptInput, claimNow } from '../../../test/contracts/store-fixtures.ts'
import { manualClock, type ManualClock } from '../../../test/support/manual-clock.ts'
import { SimulatedWriter } from '../../../test/support/simulated-writer.ts'
import { AppError } from '../../errors/app-error.ts'
import { batchCharsMax, CommandLog, hasLog, readLog } from './command-log.ts'
import { type Commands, toFailure } from './commands.ts'
import { applyMs, CommitQueue } from './commit-queue.ts'
import type { TailRow } from './pending-command.ts'

const lineage = 5
const turn = () => new Promise((resolve) => setImmediate(resolve))

let folder: string
let file: string
let clock: ManualClock
let writer: SimulatedWriter
let sent: SimulatedWriter['sent']
let stored: [row: TailRow, body: string | undefined][]
let folded: [runId: string, lastSeq: number][]
let mayLog: boolean
let queue: CommitQueue
let log: CommandLog

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-logged-'))
  file = join(folder, 'polylog.db')
  clock = manualClock()
  writer = new SimulatedWriter()
  sent = writer.sent
  stored = []
  folded = []
  mayLog = true
  queue = new CommitQueue(writer.asWriter, {
    gatherMs: 0,
    clock,
    onError: () => {},
    onStored: (row) => void stored.push([row, queue.loggedBody(row.id)]),
    onFolded: (runId, lastSeq) => void folded.push([runId, lastSeq]),
    openLog: (state) => (log = new CommandLog(file, state, clock)),
    mayLog: () => mayLog,
  })
  say({ type: 'ready', log: { lineage, applied: 0 } })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const tailRow = (runId: string, id: number, firstSeq: number, lastSeq = firstSeq): TailRow => ({
  runId,
  id,
  firstSeq,
  lastSeq,
})

function acceptCommand(runId: string, changes: object = {}): Commands['accept']['takes'] {
  const claim = { node: claimNow.node, leaseUntil: 9000, leaseNow: 0 }
  const journal = { id: queue.tailId(), lastSeq: 1, body: `${runId} 1` }
  const { events: _events, claim: _claim, start: _start, ...input } = acceptInput(runId)
  return { ...input, claim, attempt: 1, journal, ...changes }
}

function accept(runId: string, changes: object = {}) {
  const command = acceptCommand(runId, changes)
  return queue.run('accept', command, true, tailRow(runId, command.journal?.id ?? 0, 1))
}

const delta = (runId: string, seq: number, epoch = 1) =>
  queue.appendDelta(tailRow(runId, queue.tailId(), seq), epoch, `${runId} ${seq}`, false)

const say = (message: object) => writer.say(message)
const done = (reply: object = {}) => writer.done(reply)
const failed = (more: object = {}) =>
  say({ type: 'failed', failure: toFailure(new AppError('store_unavailable', 'full')), ...more })
const batchAt = (index: number) => writer.batchAt(index)
/** The events in a batch, as `run seq`. */
const events = (index: number) =>
  [...writer.loggedAt(index), batchAt(index).values]
    .flat()
    .flatMap((value) => String(value).split('\n'))
    .filter((value) => /^r\d \d+$/.test(value))
/** The records of the log that are in a batch: how many, after which one, and up to which one. */
const loggedIn = (index: number) => {
  const { logged } = batchAt(index)
  return { records: writer.loggedAt(index).length, after: logged?.after, number: logged?.number }
}
const inLog = (after = 0) => readLog(file, { lineage, applied: after }).length

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
    const accepts = writer
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

    mayLog = false
    void delta('r1', 2)
    await turn()
    assert.equal(sent.length, 2)
  })

  test('goes to the writer after a batch there that a power cut may lose, until one there is synced', async () => {
    await accept('r1')
    void queue.readable()
    done()
    mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    assert.deepEqual([batchAt(1).durable, batchAt(1).logged], [false, undefined])
    done()
    await lossy
    mayLog = true

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
    mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    done()
    await lossy
    mayLog = true

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

const claimOne = { node: 'n', leaseUntil: 9, leaseNow: 0, now: 0, limit: 1, offers: [] }

const inConversation = {
  id: 'r1',
  owner: 'ada',
  family: 'agent',
  agentId: 'a',
  conversationId: 'c1',
  createdAt: 1,
}

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
    assert.equal(hasLog(file), false)
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
    mayLog = false
    const lossy = delta('r1', 2)
    await turn()
    mayLog = true
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

const endOf = (runId: string, seq: number): Commands['append']['takes'] => ({
  runId,
  epoch: 1,
  afterSeq: seq - 1,
  journal: { id: 99, lastSeq: seq, body: `${runId} ${seq}` },
  run: { status: 'succeeded', endedAt: 1 },
})
