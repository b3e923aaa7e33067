// The queue against a simulated writer: which commands share a batch, what is synced, what
// waits, and the result of each command if its batch is refused or fails.

import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { manualClock, type ManualClock } from '../../../test/support/manual-clock.ts'
import { SimulatedWriter } from '../../../test/support/simulated-writer.ts'
import { AppError } from '../../errors/app-error.ts'
import { type Failure, toFailure, unpackCommand } from './commands.ts'
import { CommitQueue } from './commit-queue.ts'
import type { TailRow } from './pending-command.ts'

const gatherMs = 4
const turn = () => new Promise((resolve) => setImmediate(resolve))

let clock: ManualClock
let writer: SimulatedWriter
let sent: SimulatedWriter['sent']
let stored: TailRow[]
let folded: [string, number][]
let heard: AppError[]
let queue: CommitQueue

beforeEach(() => {
  clock = manualClock()
  writer = new SimulatedWriter()
  sent = writer.sent
  stored = []
  folded = []
  heard = []
  queue = new CommitQueue(writer.asWriter, {
    gatherMs,
    clock,
    onError: (error) => void heard.push(error as AppError),
    onStored: (place) => void stored.push(place),
    onFolded: (runId, lastSeq) => void folded.push([runId, lastSeq]),
  })
  queue.opened().catch(() => {})
})

const place = (id: number, runId = 'r'): TailRow => ({ runId, id, firstSeq: id, lastSeq: id })
const say = (message: object) => writer.say(message)
const done = (reply: object = {}) => writer.done(reply)
const delta = (id: number, durable = false) => queue.appendDelta(place(id), 1, `body ${id}`, durable)
const batchAt = (index: number) => writer.batchAt(index)
const bodies = (index: number) => batchAt(index).values.filter((value) => String(value).startsWith('body'))

/** The first batch, with a delta of each of `runs` runs, is with the writer, and the time of gathering has begun. */
async function firstBatchSent(runs = 2): Promise<void> {
  const first = Array.from({ length: runs }, () => delta(1))
  await turn()
  done()
  await Promise.all(first)
}

describe('a batch', () => {
  test('is synced if it holds a barrier, also when a delta follows that', async () => {
    void delta(1)
    void delta(2, true)
    void delta(3)
    await turn()

    assert.deepEqual([sent.length, batchAt(0).durable, bodies(0)], [1, true, ['body 1', 'body 2', 'body 3']])
  })

  test('of deltas alone is not synced, and the one after a barrier neither', async () => {
    void delta(1, true)
    await turn()
    void delta(2)
    done()
    await turn()
    await clock.advance(gatherMs)

    assert.deepEqual([batchAt(0).durable, batchAt(1).durable], [true, false])
  })

  test('is one at a time: what comes meanwhile goes together in the next, in its order', async () => {
    void delta(1, true)
    await turn()
    void delta(2, true)
    await turn()
    void queue.run('check', null)
    void delta(3)
    await turn()
    assert.equal(sent.length, 1)

    done()
    await turn()

    assert.equal(sent.length, 2)
    assert.deepEqual(
      batchAt(1).values.filter((value) => value === 'check' || String(value).startsWith('body')),
      ['body 2', 'check', 'body 3'],
    )
  })

  test('of a command holds its name, its input and its long texts', async () => {
    const text = 'x'.repeat(100_000)
    void queue.run('putBlob', { id: 'b', runId: 'r', body: text })
    await turn()

    const [name, json, count, ...texts] = batchAt(0).values
    assert.deepEqual([name, count, texts.length], ['putBlob', 1, 1])
    assert.deepEqual(unpackCommand(json as string, texts as string[]), { id: 'b', runId: 'r', body: text })
    assert.equal(batchAt(0).durable, true)
  })
})

describe('deltas', () => {
  test('wait for others until the gathering interval has passed since the last batch of deltas', async () => {
    await firstBatchSent()
    await clock.advance(1)
    void delta(2)
    await turn()
    await turn()
    assert.equal(sent.length, 1)

    await clock.advance(gatherMs - 2)
    assert.equal(sent.length, 1)
    void delta(3)
    await clock.advance(1)

    assert.deepEqual([sent.length, bodies(1)], [2, ['body 2', 'body 3']])
    assert.equal(clock.pending, 0)
  })

  test('go at once after a batch of one run, because there is nothing to share', async () => {
    await firstBatchSent(1)
    void delta(2)
    await turn()
    assert.equal(sent.length, 2)
  })

  test('go at once after a barrier, because the first words of an answer must not wait', async () => {
    const barrier = delta(1, true)
    await turn()
    done()
    await barrier
    void delta(2)
    await turn()

    assert.deepEqual([sent.length, bodies(1)], [2, ['body 2']])
  })

  test('go at once if the last batch was long ago', async () => {
    await firstBatchSent()
    await clock.advance(gatherMs)
    void delta(2)
    await turn()

    assert.equal(sent.length, 2)
  })

  test('are not held by a clock that is set back, nor hurried by one that is set forward', async () => {
    await firstBatchSent()
    clock.set(-3_600_000)
    void delta(2)
    void delta(3)
    await turn()
    await clock.advance(gatherMs)
    assert.equal(sent.length, 2)

    done()
    clock.set(7_200_000)
    void delta(4)
    await turn()
    assert.equal(sent.length, 2)
    await clock.advance(gatherMs)
    assert.equal(sent.length, 3)
  })

  test('that wait go with a barrier that comes', async () => {
    await firstBatchSent()
    void delta(2)
    await turn()
    void delta(3, true)
    await turn()

    assert.deepEqual([sent.length, batchAt(1).durable, bodies(1)], [2, true, ['body 2', 'body 3']])
    done()
    await clock.advance(gatherMs * 10)
    assert.equal(sent.length, 2, 'the timer of the first finds nothing')
  })
})

describe('the answer of the writer', () => {
  const failure = (code: AppError['code'] = 'run_fenced'): Failure => toFailure(new AppError(code, 'no'))

  test('gives each command its own result, in the order of the batch', async () => {
    const order: string[] = []
    const note = (name: string) => (value: unknown) => void order.push(`${name} ${JSON.stringify(value)}`)
    const all = [
      queue.run('deleteConversation', { id: 'a' }).then(note('first')),
      delta(1).then(note('second')),
      queue.run('deleteConversation', { id: 'b' }).then(note('third')),
    ]
    await turn()
    done({
      results: [
        [2, false],
        [0, true],
      ],
      folded: [['r', 1]],
    })
    await Promise.all(all)

    assert.deepEqual(order, ['first true', 'second null', 'third false'])
    assert.deepEqual(stored, [place(1)])
    assert.deepEqual(folded, [['r', 1]])
  })

  test('that refuses one command does not affect the others, and the refused one is not stored', async () => {
    const results = Promise.allSettled([delta(1), delta(2), delta(3)])
    await turn()
    done({ failures: [[1, failure()]] })

    assert.deepEqual(
      (await results).map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(stored, [place(1), place(3)])
    assert.deepEqual(heard, [], 'a refusal is the business of its caller')
  })

  test('is known to readers before its caller goes on', async () => {
    const seen = delta(1).then(() => stored.length)
    await turn()
    done()

    assert.equal(await seen, 1)
  })

  test('that the whole batch failed is passed to each of its commands, and the next batch is written', async () => {
    const results = Promise.allSettled([delta(1), delta(2, true)])
    await turn()
    const later = delta(3, true)
    say({ type: 'failed', failure: failure('store_unavailable') })
    await turn()

    for (const result of await results) {
      assert.equal(result.status, 'rejected')
      assert.equal((result.reason as AppError).code, 'store_unavailable')
    }
    assert.deepEqual(stored, [])
    assert.equal(heard.length, 1)
    assert.deepEqual(bodies(1), ['body 3'])
    done()
    await later
  })

  test('that a repeated accept found its run stores nothing new', async () => {
    const results = [
      { outcome: 'existing', run: {} },
      { outcome: 'accepted', run: {} },
    ]
    const accepted = queue.run('acceptAll', { inputs: [], extraRows: {} }, true, place(1, 'a'), place(2, 'b'))
    await turn()
    done({ results: [[0, results]] })
    await accepted

    assert.deepEqual(stored, [place(2, 'b')])
  })

  test('that reports an error during upkeep is passed on, and stops nothing', async () => {
    say({ type: 'trouble', failure: failure('store_unavailable') })
    const next = delta(1)
    await turn()
    done()
    await next

    assert.equal(heard.length, 1)
  })
})

describe('a writer that dies', () => {
  test('rejects what it was sent, what waits, and all that comes after', async () => {
    const torn = delta(1, true)
    await turn()
    const waiting = delta(2)
    writer.emit('error', new Error('out of memory'))
    writer.emit('exit', 1)

    for (const command of [torn, waiting, delta(3), queue.run('check', null)]) {
      await assert.rejects(command, { code: 'store_unavailable', message: /writer .*stopped.*acknowledged is safe/ })
    }
    assert.deepEqual(stored, [])
    assert.equal(heard.length, 1)
    assert.match((heard[0]?.cause as Error | undefined)?.message ?? '', /out of memory/)
    await assert.rejects(queue.opened())
    await queue.close()
    assert.equal(sent.length, 1, 'nobody is there to be told')
  })

  test('before it was ready gives its reason', async () => {
    say({ type: 'refused', failure: toFailure(new AppError('config_invalid', 'A newer version wrote it.')) })

    await assert.rejects(queue.opened(), { code: 'config_invalid' })
    await assert.rejects(delta(1), { code: 'config_invalid' })
  })
})

describe('closing', () => {
  test('writes first what was asked for before: what is under way, what gathers, what waits', async () => {
    const first = delta(1, true)
    await turn()
    const second = delta(2)
    const third = queue.run('check', null)
    const closed = queue.close()
    await assert.rejects(delta(4), { code: 'store_unavailable', message: /closed/ })
    await assert.rejects(queue.run('check', null), { code: 'store_unavailable', message: /closed/ })
    assert.equal(sent.length, 1)
    done()
    await first
    assert.deepEqual(bodies(1), ['body 2'])
    assert.equal(batchAt(1).durable, true)
    done()
    await Promise.all([second, third])

    assert.equal(sent[2], 'close')
    say({ type: 'closed' })
    await closed
    assert.equal(queue.close(), closed)
    writer.emit('exit', 0)
    assert.deepEqual(heard, [], 'a writer that ends after a close has not died')
  })

  test('does not wait for the gathering interval', async () => {
    await firstBatchSent()
    const last = delta(2)
    await turn()
    const closed = queue.close()

    assert.deepEqual(bodies(1), ['body 2'])
    done()
    await last
    assert.equal(sent[2], 'close')
    say({ type: 'closed' })
    await closed
    assert.equal(clock.pending, 0)
  })

  test('is at once if nothing waits, and resolves when the writer confirms it', async () => {
    let over = false
    const closed = queue.close().then(() => (over = true))
    await turn()
    assert.deepEqual([sent, over], [['close'], false])

    say({ type: 'closed' })
    await closed
  })
})

test('a damaged database refuses everything from then on, and is closed in order', async () => {
  const hit = delta(1, true)
  await turn()
  const waiting = delta(2)
  say({ type: 'failed', failure: toFailure(new AppError('store_damaged', 'damaged', { retryable: false })) })

  for (const command of [hit, waiting, delta(3)]) await assert.rejects(command, { code: 'store_damaged' })
  await turn()
  assert.equal(sent.length, 1)
  assert.equal(heard.length, 1)
  const closed = queue.close()
  assert.equal(sent[1], 'close')
  say({ type: 'closed' })
  await closed
  await assert.rejects(delta(4), { code: 'store_damaged' })
})

test('ids in the tail grow, and the opening is reported', async () => {
  assert.deepEqual([queue.tailId(), queue.tailId(), queue.tailId()], [1, 2, 3])
  say({ type: 'ready', log: { lineage: 1, applied: 0 } })
  await queue.opened()
})
