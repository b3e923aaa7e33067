// Appends that change nothing but the journal, on a real server: how many statements and commits they cost. The clock of
// the test decides when the gathering ends.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test, type TestContext } from 'node:test'
import pg from 'pg'
import { claimedRun, delta, seqs, write } from '../../../test/contracts/store-fixtures.ts'
import { type ManualClock, manualClock } from '../../../test/support/manual-clock.ts'
import { newStoreDatabase, type TestDatabase } from '../../../test/support/postgres.ts'
import { until } from '../../../test/support/until.ts'
import type { RunRow } from '../run-store.ts'
import type { Store } from '../store.ts'
import { openPool } from './connection.ts'
import { DeltaQueue } from './delta-queue.ts'
import { openPostgresStore } from './postgres-store.ts'

const gatherMs = 4

let database: TestDatabase
let clock: ManualClock
let store: Store
let runs = 0

beforeEach(async () => {
  database = await newStoreDatabase()
  clock = manualClock()
  store = await openPostgresStore({ url: database.url, clock, commitGatherMs: gatherMs, connectionsMax: 4 })
})

afterEach(async () => {
  const closing = store.close()
  // A test that failed may have left appends that gather.
  await settled(closing, async () => await clock.advance(gatherMs))
  await database.drop()
})

async function claimedRuns(count: number): Promise<RunRow[]> {
  const claimed: RunRow[] = []
  for (let index = 0; index < count; index += 1) claimed.push(await claimedRun(store, `run-${(runs += 1)}`))
  return claimed
}

/** What the database is asked from now on. An append of the queue is `insert`; its transaction has a word before and after. */
function statements(context: TestContext): string[] {
  const seen: string[] = []
  const { query } = pg.Client.prototype as unknown as { query(this: pg.Client, ...given: unknown[]): unknown }
  context.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...given: unknown[]) {
    const [asked] = given as [string | { text: string }]
    seen.push(wordOf(typeof asked === 'string' ? asked : asked.text))
    return query.apply(this, given)
  })
  return seen
}

function wordOf(sql: string): string {
  if (/^BEGIN; SET LOCAL lock_timeout = \d+$/.test(sql)) return 'begin'
  if (/^BEGIN; SET LOCAL lock_timeout = \d+; SET LOCAL synchronous_commit = off$/.test(sql)) return 'begin unsynced'
  if (sql === 'COMMIT') return 'commit'
  return /INSERT INTO journal/.test(sql) ? 'insert' : sql
}

const append = (run: RunRow, durable = false) => store.append(write(run, 1, { events: [delta(2)], durable }))

/** Waits for what needs the database. The clock moves only if `meanwhile` moves it. */
async function settled<T>(work: Promise<T>, meanwhile = async () => {}): Promise<T> {
  let isSettled = false
  void Promise.allSettled([work]).then(() => (isSettled = true))
  await until('the database', async () => {
    await meanwhile()
    return isSettled
  })
  return await work
}

/** The last batch of deltas was just sent, so the next ones gather. */
async function sendFirst(): Promise<void> {
  await clock.advance(gatherMs)
  const [run] = await claimedRuns(1)
  assert.ok(run !== undefined)
  await settled(append(run))
}

describe('deltas of many runs', () => {
  test('are one statement in one commit that is not synced', async (context) => {
    const many = await claimedRuns(50)
    await sendFirst()
    const seen = statements(context)

    const appended = Promise.all(many.map((run) => append(run)))
    await clock.advance(gatherMs - 1)
    assert.deepEqual(seen, [], 'they gather')
    await clock.advance(1)
    await settled(appended)

    assert.deepEqual(seen, ['begin unsynced', 'insert', 'commit'])
    for (const run of many) assert.deepEqual(await seqs(store, run.id), [1, 2])
  })

  test('do not wait if the last ones were sent long ago', async (context) => {
    const [run] = await claimedRuns(1)
    await sendFirst()
    await clock.advance(gatherMs)
    const seen = statements(context)

    assert.ok(run !== undefined)
    await settled(append(run))

    assert.deepEqual(seen, ['begin unsynced', 'insert', 'commit'])
  })

  test('that come while a statement is under way share the next one', async (context) => {
    const many = await claimedRuns(20)
    await sendFirst()
    await clock.advance(gatherMs)
    const seen = statements(context)

    // The first is sent at once, alone.
    const appended = Promise.all(many.map((run) => append(run)))
    await until('the next ones to gather', () => clock.pending > 0)
    await clock.advance(gatherMs)
    await settled(appended)

    const once = ['begin unsynced', 'insert', 'commit']
    assert.deepEqual(seen, [...once, ...once])
  })

  test('go with a barrier that comes: at once, in one statement and one commit that is synced', async (context) => {
    const [barrier, ...others] = await claimedRuns(10)
    await sendFirst()
    const seen = statements(context)

    assert.ok(barrier !== undefined)
    const appended = [...others.map((run) => append(run)), append(barrier, true)]
    await settled(Promise.all(appended))

    assert.deepEqual(seen, ['begin', 'insert', 'commit'])
    assert.equal(clock.pending, 0, 'nothing is left to gather')
  })

  test('go at once after a barrier, because the first words of an answer must not wait', async (context) => {
    const [barrier, run] = await claimedRuns(2)
    await sendFirst()
    await clock.advance(gatherMs)
    assert.ok(barrier !== undefined && run !== undefined)
    await settled(append(barrier, true))
    const seen = statements(context)

    await settled(append(run))

    assert.deepEqual(seen, ['begin unsynced', 'insert', 'commit'])
  })

  test('are written also if one of them is refused', async (context) => {
    const many = await claimedRuns(10)
    await sendFirst()
    const seen = statements(context)

    const stale = many.map((run, index) => (index === 3 ? { ...run, epoch: run.epoch - 1 } : run))
    const appended = Promise.allSettled(stale.map((run) => append(run)))
    await clock.advance(gatherMs)

    const refused = (await settled(appended)).flatMap((result, index) => (result.status === 'rejected' ? [index] : []))
    assert.deepEqual([refused, seen], [[3], ['begin unsynced', 'insert', 'commit']])
    for (const [index, run] of many.entries()) assert.deepEqual(await seqs(store, run.id), index === 3 ? [1] : [1, 2])
  })
})

test('a statement has at most 500 appends; the others follow in the next', async (context) => {
  const pool = openPool({ url: database.url })
  context.after(() => pool.end())
  const queue = new DeltaQueue(pool, clock, gatherMs)
  const row = { firstSeq: 2, lastSeq: 2, body: '' }
  await assert.rejects(queue.append('nobody', 1, row, false), { code: 'run_fenced' })
  const seen = statements(context)

  // Runs that do not exist are refused, but not before they are looked for.
  const appended = Promise.allSettled(
    Array.from({ length: 501 }, (_, index) => queue.append(`missing-${index}`, 1, row, false)),
  )
  await clock.advance(gatherMs)
  await until('the next ones to gather', () => clock.pending > 0)
  assert.equal(seen.filter((word) => word === 'insert').length, 1)
  await clock.advance(gatherMs)
  await settled(appended)

  assert.equal(seen.filter((word) => word === 'insert').length, 2)
})
