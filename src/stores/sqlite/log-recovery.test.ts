// What the database has after its server was killed while acknowledged commands were only in the log.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import {
  acceptInput,
  claimNow,
  deltas,
  inConversation,
  message,
  write,
} from '../../../test/contracts/store-fixtures.ts'
import { crashImage, unappliedRecords } from '../../../test/support/test-database.ts'
import { until } from '../../../test/support/until.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { logState } from './batch-writer.ts'
import { CommandLog, hasLog, readLog } from './command-log.ts'
import { copyDatabase } from './copy-file.ts'
import { openSqliteStore } from './sqlite-store.ts'

let folder: string
let file: string
const opened: Store[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-log-recovery-'))
  file = join(folder, 'live', 'polylog.db')
})
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(path: string, onError: (error: unknown) => void = () => {}): Promise<Store> {
  // The clock stands still, so the log is applied only for a read.
  const store = await openSqliteStore({
    file: path,
    clock: manualClock(),
    time: systemClock,
    commitGatherMs: 0,
    onError,
  })
  opened.push(store)
  return store
}

/** The log is used when the space on the disk is known. */
async function openWithLog(path: string): Promise<Store> {
  const store = await open(path)
  await until('the log is used', async () => {
    const id = `probe-${Math.random()}`
    const { run } = await store.accept(acceptInput(id, { claim: claimNow }))
    const ended = { status: 'succeeded', endedAt: 1, release: true } as const
    await store.append(write(run, 1, { events: deltas(2, 1), durable: true, run: ended }))
    return unappliedRecords(path) > 0
  })
  // Everything is applied, because this needs the database.
  await store.check()
  return store
}

/** The files as a kill would leave them now. */
async function killed(name: string): Promise<string> {
  const copy = join(folder, name, 'polylog.db')
  mkdirSync(join(folder, name))
  await crashImage(file, copy)
  return copy
}

const seqsOf = async (store: Store, runId: string) =>
  (await store.readEvents(runId, 0, 100)).events.map(({ seq }) => seq)

describe('after a kill', () => {
  test('a log of many records is there as a whole', async () => {
    const store = await openWithLog(file)
    const { run } = await store.accept(inConversation('r', 'c', 'absent', { claim: claimNow }))
    const last = 1300
    for (let seq = 2; seq <= last; seq += 1) await store.append(write(run, seq - 1, { events: deltas(seq, 1) }))
    const copy = await killed('many')
    assert.equal(unappliedRecords(copy), last)

    const again = await open(copy)
    const { events } = await again.readEvents('r', 0, 2 * last)
    assert.deepEqual([events.length, events.at(-1)?.seq], [last, last])
    assert.equal((await again.readRun('r'))?.lastSeq, last)
  })

  test('every acknowledged command is there, at each moment of a run, and the run goes on', async () => {
    const store = await openWithLog(file)
    const { run } = await store.accept(
      inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m1', 'c')] }),
    )
    const copies = [await killed('accepted')]
    await store.append(write(run, 1, { events: deltas(2, 1) }))
    copies.push(await killed('one'))
    await store.append(write(run, 2, { events: deltas(3, 2), durable: true }))
    copies.push(await killed('three'))
    await store.append(
      write(run, 4, {
        events: deltas(5, 1),
        durable: true,
        messages: [{ ...message('m2', 'c'), role: 'assistant', runId: 'r' }],
        touchConversationAt: 5000,
        run: { status: 'succeeded', endedAt: 5000, release: true },
      }),
    )
    copies.push(await killed('ended'))
    assert.ok(unappliedRecords(file) >= 4, 'only the log has them')

    for (const [index, copy] of copies.entries()) {
      const again = await open(copy)
      const last = [1, 2, 4, 5][index] as number
      assert.deepEqual(
        await seqsOf(again, 'r'),
        Array.from({ length: last }, (_, at) => at + 1),
      )
      const row = await again.readRun('r')
      assert.deepEqual([row?.lastSeq, row?.leaseOwner], [last, null])
      assert.equal(row?.status, index === 3 ? 'succeeded' : 'queued')
      assert.equal((await again.listMessages('c', { limit: 10 })).rows.length, index === 3 ? 2 : 1)
      const [claimed] = await again.claim({ ...claimNow, limit: 1 })
      assert.equal(claimed?.id, index === 3 ? undefined : 'r')
      if (claimed !== undefined) await again.append(write(claimed, last, { events: deltas(last + 1, 1) }))
      await again.close()
      assert.equal(hasLog(copy), false, 'nothing is left in the log after a clean stop')
      const third = await open(copy)
      assert.equal((await third.readRun('r'))?.lastSeq, index === 3 ? last : last + 1)
    }
  })

  test('a second kill while the log is applied loses and repeats nothing', async () => {
    const store = await openWithLog(file)
    const { run } = await store.accept(acceptInput('r', { claim: claimNow }))
    for (let seq = 2; seq <= 20; seq += 1) await store.append(write(run, seq - 1, { events: deltas(seq, 1) }))
    const copy = await killed('twice')
    // The database has a part of the log.
    const db = new DatabaseSync(copy)
    const state = logState(db)
    const records = readLog(copy, state)
    assert.ok(records.length >= 20)
    db.close()
    const { batchWriter } = await import('./batch-writer.ts')
    const { openWriter } = await import('./connection.ts')
    const half = openWriter(copy)
    batchWriter(half, records.slice(0, 9))
    half.close()

    const again = await open(copy)
    assert.deepEqual(
      await seqsOf(again, 'r'),
      Array.from({ length: 20 }, (_, index) => index + 1),
    )
  })

  test('a backup of the files has what only the log had', async () => {
    const store = await openWithLog(file)
    await store.accept(acceptInput('r', { claim: claimNow }))
    const copy = await killed('copied')
    const target = join(folder, 'backup.db')

    copyDatabase(copy, target)

    assert.equal((await (await open(target)).readRun('r'))?.id, 'r')
    assert.equal(hasLog(copy), false)
  })

  test('a command that the database refuses is skipped and reported, and the others are there', async () => {
    await (await open(file)).close()
    const db = new DatabaseSync(file)
    const state = logState(db)
    db.close()
    const log = new CommandLog(file, state, systemClock)
    const record = log.record(['.', 'nobody', 1, 0, 1, 1, 'x', '.', 'nobody', 1, 1, 2, 2, 'y'], state.applied)
    assert.ok(record !== undefined)
    await new Promise((resolve) => log.append(record, true, resolve))
    log.close(false)
    const heard: unknown[] = []

    const store = await open(file, (error) => void heard.push(error))

    assert.match(String(heard[0]), /2 commands of the log .* were skipped/)
    await store.accept(acceptInput('r'))
    await store.close()
    const quiet = await open(file, (error) => assert.fail(String(error)))
    assert.equal((await quiet.readRun('r'))?.id, 'r')
  })
})

test('a program that reads the file of a running server waits until the server has applied its log', async () => {
  const store = await openSqliteStore({ file, clock: systemClock, commitGatherMs: 0 })
  opened.push(store)
  await until('the log is used', async () => {
    await store.accept(acceptInput(`probe-${Math.random()}`, { claim: claimNow }))
    return unappliedRecords(file) > 0
  })
  await store.accept(acceptInput('r', { claim: claimNow }))
  const target = join(folder, 'backup.db')

  // The copy is made in another thread, because this one has to apply the log.
  const worker = new Worker(new URL('../../app/backup-worker.ts', import.meta.url), { workerData: { file, target } })
  await new Promise((resolve) => worker.on('message', (message) => Array.isArray(message) && resolve(message)))
  await worker.terminate()

  assert.equal((await (await open(target)).readRun('r'))?.id, 'r')
})

test('the row of a run that is accepted from the log is the row that the database makes of it', async () => {
  const store = await openWithLog(file)
  const inputs = [
    acceptInput('plain', { claim: claimNow }),
    inConversation('talk', 'c1', 'absent', { claim: claimNow, title: 'Hello', unnamed: true }),
    acceptInput('started', {
      claim: { ...claimNow, slots: 100 },
      start: { events: deltas(2, 2), at: 1234, engine: 'local' },
    }),
  ]
  for (const given of inputs) {
    const input = given.run.id === 'plain' ? { ...given, run: { ...given.run, needs: ['gpu'], skillId: 's' } } : given
    const before = unappliedRecords(file)
    const { outcome, run } = await store.accept(input)
    assert.equal(unappliedRecords(file), before + 1, 'it was acknowledged from the log')
    assert.equal(outcome, 'accepted')
    assert.deepEqual(await store.readRun(run.id), run)
    assert.deepEqual((await store.readEvents(run.id, 0, 10)).events, [...input.events, ...(input.start?.events ?? [])])
  }
})
