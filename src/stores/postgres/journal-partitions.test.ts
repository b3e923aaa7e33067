// The partitions of the journal, on a real server: where events go, several nodes at once, and
// the removal of old ones while others write.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { encodeTime } from 'ulid'
import {
  acceptInput,
  claimedRun,
  claimNow,
  deltas,
  endRun,
  seqs,
  write,
} from '../../../test/contracts/store-fixtures.ts'
import { newStoreDatabase } from '../../../test/support/postgres.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { partitionPeriodMs } from './journal-partitions.ts'
import { partitionName, rangeOfName } from './partition-range.ts'
import { openPostgresStore } from './postgres-store.ts'

const day = 86_400_000
/** The beginning of a day. */
const today = Math.floor(Date.now() / day) * day
const idAt = (at: number, rest = '') => encodeTime(at) + rest.padStart(16, '0')
const dayName = (from: number) => partitionName({ from, until: from + day })

type Scene = { url: string; store: Store; client: pg.Client; open(): Promise<Store> }

async function scene(body: (scene: Scene) => Promise<void>): Promise<void> {
  const openAt = (url: string) =>
    openPostgresStore({ url, clock: systemClock, commitGatherMs: 0, connectionsMax: 6, partitionMs: day })
  const { url, drop } = await newStoreDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const name of await tables(client)) await client.query(`DROP TABLE ${name}`)
  const stores: Store[] = []
  const open = async () => {
    const store = await openAt(url)
    stores.push(store)
    return store
  }
  try {
    await body({ url, store: await open(), client, open })
  } finally {
    for (const store of stores) await store.close()
    await client.end()
    await drop()
  }
}

/** Partitions with a range of times, attached or not, oldest first. */
async function tables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>("SELECT relname AS name FROM pg_class WHERE relkind = 'r'")
  return rows
    .map(({ name }) => name)
    .filter((name) => rangeOfName(name) !== undefined)
    .sort()
}

async function rowsIn(client: pg.Client, table: string): Promise<number> {
  return Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${table}`)).rows[0]?.count)
}

/** A run that was accepted at `at` and has ended, with a few rows of events. */
async function oldRun(store: Store, at: number, rest = ''): Promise<string> {
  const run = await claimedRun(store, idAt(at, rest))
  for (const seq of [2, 4, 6]) await store.append(write(run, seq - 1, { events: deltas(seq, 2) }))
  await endRun(store, run, 7, at)
  return run.id
}

describe('a partition of the journal', () => {
  test('holds all events of the runs of a day, and a read looks into no other', () =>
    scene(async ({ store, client }) => {
      const first = await oldRun(store, today - 40 * day + 5)
      await oldRun(store, today - 40 * day + 6, '1')
      await oldRun(store, today)
      await claimedRun(store, 'no ULID')

      assert.deepEqual(await tables(client), [dayName(today - 40 * day), dayName(today)])
      assert.equal(await rowsIn(client, dayName(today - 40 * day)), 8)
      assert.equal(await rowsIn(client, 'journal_high'), 1)
      assert.deepEqual(await seqs(store, first), [1, 2, 3, 4, 5, 6, 7])
      const plan = await client.query(`EXPLAIN SELECT * FROM journal WHERE run_id = '${first}'`)
      const found = JSON.stringify(plan.rows).match(/journal_[0-9a-z_]+/g) ?? []
      assert.ok(found.length > 0 && found.every((name) => name.startsWith(dayName(today - 40 * day))), found.join())
    }))

  test('is made once if several nodes need it at the same time, and ahead of time', () =>
    scene(async ({ store, client, open }) => {
      const nodes = [store, await open(), await open(), await open()]
      await Promise.all(
        nodes.flatMap((node, index) =>
          [0, 1, 2].map((ahead) => claimedRun(node, idAt(today + ahead * day, `${index}${ahead}`))),
        ),
      )
      assert.deepEqual(
        await tables(client),
        [0, 1, 2].map((ahead) => dayName(today + ahead * day)),
      )

      await Promise.all(nodes.map((node) => node.tidyJournal(null)))
      await store.tidyJournal(null)
      assert.deepEqual(
        await tables(client),
        [0, 1, 2].map((ahead) => dayName(today + ahead * day)),
      )
    }))

  test('is an eighth of the retention long, in whole days', () => {
    const days = (retention: number | null) => partitionPeriodMs(retention === null ? null : retention * day) / day
    assert.deepEqual([null, 0.01, 7, 30, 90, 3650].map(days), [30, 1, 1, 4, 12, 30])
  })
})

describe('an old partition', () => {
  test('is dropped when no run is left in it; events of removed runs beside an open one are deleted', () =>
    scene(async ({ store, client }) => {
      const [far, near] = [today - 40 * day, today - 30 * day]
      const gone = [await oldRun(store, far), await oldRun(store, far + 1, '1'), await oldRun(store, near)]
      const { run: open } = await store.accept(acceptInput(idAt(near + 1), { claim: claimNow }))
      const strange = await claimedRun(store, 'no ULID')
      await endRun(store, strange, 1, far)
      const young = await oldRun(store, today)
      const cut = today - 10 * day

      assert.equal(await store.expireRuns(cut, 100), 4)
      for (const id of gone)
        assert.deepEqual(await store.readEvents(id, 0, 10), { events: [], skipped: 0, nextAfter: 0, atHead: true })
      assert.equal(await rowsIn(client, dayName(far)), 8, 'the events are left to the next tidying')

      const done = await store.tidyJournal(cut)

      assert.deepEqual([done.partitionsDropped, done.rowsRemoved], [1, 5])
      assert.ok(!(await tables(client)).includes(dayName(far)))
      assert.deepEqual([await rowsIn(client, dayName(near)), await rowsIn(client, 'journal_high')], [1, 0])
      assert.deepEqual(await seqs(store, young), [1, 2, 3, 4, 5, 6, 7])
      await store.append(write(open, 1, { events: deltas(2, 1) }))
      await endRun(store, open, 2, near)
      assert.equal(await store.expireRuns(cut, 100), 1)
      assert.equal((await store.tidyJournal(cut)).partitionsDropped, 1)
      // A node whose clock is far behind still finds a place.
      assert.deepEqual(await seqs(store, await oldRun(store, far)), [1, 2, 3, 4, 5, 6, 7])
    }))

  test('leaves without making a writer wait, also while a long transaction reads the journal', () =>
    scene(async ({ client, url, open }) => {
      const name = new URL(url).pathname.slice(1)
      // Any writer that has to wait for a lock this long fails, and so does the test.
      await client.query(`ALTER DATABASE ${name} SET lock_timeout = '1s'`)
      const reader = new pg.Client({ connectionString: url })
      await reader.connect()
      try {
        const [store, remover] = [await open(), await open()]
        const old = await oldRun(store, today - 40 * day)
        await store.expireRuns(today, 100)
        await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM journal')

        const state = { removing: true }
        const removal = remover.tidyJournal(today).finally(() => (state.removing = false))
        const run = await claimedRun(store, idAt(today, 'w'))
        let seq = 1
        while (state.removing) {
          await store.append(write(run, seq, { events: deltas(seq + 1, 1) }))
          await claimedRun(store, idAt(today, `n${seq}`))
          assert.equal((await store.readEvents(run.id, seq, 10)).events.length, 1)
          seq += 1
        }

        assert.equal((await removal).partitionsDropped, 0, 'the reader holds it')
        assert.ok(seq > 10, `only ${seq} appends while the removal waited`)
        assert.equal((await reader.query('SELECT 1 FROM journal WHERE run_id = $1', [old])).rowCount, 4)
        await reader.query('COMMIT')
        assert.equal((await remover.tidyJournal(today)).partitionsDropped, 1, 'the next call finishes it')
        await store.append(write(run, seq, { events: deltas(seq + 1, 1) }))
      } finally {
        await reader.end()
        await client.query(`ALTER DATABASE ${name} RESET lock_timeout`)
      }
    }))

  test('whose removal was interrupted is dropped by the next call, or comes back if it has a run after all', () =>
    scene(async ({ store, client }) => {
      const [empty, used] = [today - 50 * day, today - 40 * day]
      await oldRun(store, empty)
      await store.expireRuns(today, 100)
      const late = await oldRun(store, used)
      for (const from of [empty, used]) await client.query(`ALTER TABLE journal DETACH PARTITION ${dayName(from)}`)

      assert.equal((await store.tidyJournal(today)).partitionsDropped, 1)

      assert.ok(!(await tables(client)).includes(dayName(empty)))
      assert.deepEqual(await seqs(store, late), [1, 2, 3, 4, 5, 6, 7])
    }))
})
